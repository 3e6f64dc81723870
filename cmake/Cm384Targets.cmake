# Every target of the project is made by one of these, so that flags stand in one place.

find_program(CCACHE ccache)
if(CCACHE)
  # Objects are shared by checkouts in different folders.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  ${CCACHE})
endif()

add_library(cm384_flags INTERFACE)
target_include_directories(cm384_flags INTERFACE ${CMAKE_SOURCE_DIR})
# No contraction: results must not depend on whether the machine that builds has fused multiply-add.
target_compile_options(cm384_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                                             -ffp-contract=off)
if(CM384_SANITIZE)
  target_compile_options(cm384_flags INTERFACE -fsanitize=${CM384_SANITIZE} -fno-omit-frame-pointer
                                               -fno-sanitize-recover=all)
  target_link_options(cm384_flags INTERFACE -fsanitize=${CM384_SANITIZE})
endif()

# The one target that carries SystemC. Debian builds libsystemc as C++17 and its link-time check compares that with the
# user's standard; no SystemC or TLM header differs between C++17 and C++20, so the standard is stated as the library's.
find_library(SYSTEMC_LIBRARY systemc)
if(SYSTEMC_LIBRARY)
  add_library(cm384_systemc INTERFACE)
  target_compile_definitions(cm384_systemc INTERFACE SC_CPLUSPLUS=201703L)
  target_link_libraries(cm384_systemc INTERFACE ${SYSTEMC_LIBRARY} Threads::Threads)
endif()

# cm384_library(NAME SOURCES ... [LINK ...]): a static library of one room or part.
function(cm384_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC cm384_flags ${arg_LINK})
endfunction()

# cm384_test(NAME SOURCES ... [LINK ...] [LABELS ...]): a GoogleTest program; the label is its tier
# (unit, formula, timing, system, validation). The further label `verify` takes a long one out of `./dev test`.
function(cm384_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT CM384_TESTS)
    return()
  endif()
  find_package(GTest REQUIRED)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE cm384_flags ${arg_LINK} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE CM384_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600)
  if(arg_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}")
  endif()
  if("verify" IN_LIST arg_LABELS)
    set_tests_properties(${name} PROPERTIES TIMEOUT 3600)
  endif()
endfunction()

# cm384_benchmark(NAME SOURCES ... [LINK ...]): a Google Benchmark program, run by `./dev bench`.
add_custom_target(benchmarks)
function(cm384_benchmark name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  if(NOT CM384_BENCHMARKS)
    return()
  endif()
  find_package(benchmark REQUIRED)
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE cm384_flags ${arg_LINK} benchmark::benchmark_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/benchmarks)
  add_dependencies(benchmarks ${name})
endfunction()
