# Every target of the project is made by one of these, so that flags stand in one place.

find_program(CCACHE ccache)
if(CCACHE)
  # Objects are shared by checkouts in different folders.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

add_library(cm384_flags INTERFACE)
target_include_directories(cm384_flags INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:include/cm384>)
target_compile_features(cm384_flags INTERFACE cxx_std_20)
# No contraction: results must not depend on whether the machine that builds has fused multiply-add.
target_compile_options(cm384_flags INTERFACE $<BUILD_INTERFACE:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion;-ffp-contract=off>)
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
  target_link_libraries(cm384_systemc INTERFACE $<BUILD_INTERFACE:${SYSTEMC_LIBRARY}> $<INSTALL_INTERFACE:systemc>
                                                Threads::Threads)
endif()

# Precompiled headers: reading the headers of the libraries costs more than compiling our own lines. Sources include
# what they use all the same; CM384_PCH=OFF builds without, as the preset asan does.
#     models   the standard library and fmt
#     json     JSON as well
#     tests    GoogleTest and JSON as well
#     machine_tests   a whole machine as well, which costs each test several seconds to read
option(CM384_PCH "precompiled headers" ON)
set(std_headers <algorithm> <array> <atomic> <bit> <cassert> <cstdint> <cstring> <deque> <functional> <map> <memory>
                <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>)
function(cm384_pch kind)
  if(NOT CM384_PCH OR TARGET cm384_pch_${kind})
    return()
  endif()
  cmake_parse_arguments(arg "" "" "HEADERS;LINK;OPTIONS" ${ARGN})
  set(source ${CMAKE_BINARY_DIR}/pch_${kind}.cpp)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "")
  endif()
  add_library(cm384_pch_${kind} OBJECT ${source})
  target_link_libraries(cm384_pch_${kind} PRIVATE cm384_flags ${arg_LINK})
  # What ccache asks for.
  target_compile_options(cm384_pch_${kind} PRIVATE -fpch-preprocess ${arg_OPTIONS})
  target_precompile_headers(cm384_pch_${kind} PRIVATE ${arg_HEADERS})
endfunction()
cm384_pch(models HEADERS ${std_headers} <fmt/format.h> LINK fmt::fmt)
cm384_pch(json HEADERS ${std_headers} <fmt/format.h> <nlohmann/json.hpp> LINK fmt::fmt nlohmann_json::nlohmann_json)
function(cm384_use_pch name kind)
  if(CM384_PCH AND NOT kind STREQUAL none)
    target_compile_options(${name} PRIVATE -fpch-preprocess)
    target_precompile_headers(${name} REUSE_FROM cm384_pch_${kind})
    # Their definitions are part of what was precompiled.
    target_link_libraries(${name} PRIVATE fmt::fmt)
  endif()
endfunction()

# Unity builds: the sources of a library are compiled several at a time, which costs a third of the processor time. Names
# in anonymous namespaces must differ within a library. CM384_UNITY=OFF compiles each source by itself: for working long in
# one library, and for clang-tidy, which wants a command for each source.
option(CM384_UNITY "compile the sources of a library several at a time" ON)
set(unity_sources 24)

# Sets VARIABLE to what to compile for these sources of the calling folder: those of a property COMPILE_OPTIONS or
# OBJECT_DEPENDS by themselves. CMake's own unity files name their parts by absolute paths, so that checkouts in different
# folders could not share objects.
function(cm384_unity variable name)
  set(result)
  set(parts)
  foreach(source IN LISTS ARGN)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    get_source_file_property(needs ${source} OBJECT_DEPENDS)
    cmake_path(IS_ABSOLUTE source absolute)
    if(absolute OR options OR needs)
      list(APPEND result ${source})
    else()
      list(APPEND parts ${source})
    endif()
  endforeach()
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE folder)
  list(LENGTH parts count)
  set(first 0)
  while(first LESS count)
    list(SUBLIST parts ${first} ${unity_sources} batch)
    set(text "")
    foreach(source IN LISTS batch)
      string(APPEND text "#include \"${folder}/${source}\"\n")
    endforeach()
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}.unity/${first}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND result ${file})
    math(EXPR first "${first} + ${unity_sources}")
  endwhile()
  set(${variable} ${result} PARENT_SCOPE)
endfunction()

# Of a build type that optimises.
set(low_optimisation $<$<CONFIG:Release,RelWithDebInfo>:-O1>)

# cm384_library(NAME SOURCES ... [LINK ...] [PCH models|json|none] [COLD]): a static library of one room or part. COLD is
# what no run spends its time in: optimised little, since the time to build it is what a user sees of it.
function(cm384_library name)
  cmake_parse_arguments(arg "COLD" "PCH" "SOURCES;LINK" ${ARGN})
  if(CM384_UNITY)
    cm384_unity(arg_SOURCES ${name} ${arg_SOURCES})
  endif()
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC cm384_flags ${arg_LINK})
  if(arg_COLD)
    target_compile_options(${name} PRIVATE ${low_optimisation})
  endif()
  if(NOT arg_PCH)
    set(arg_PCH models)
  endif()
  cm384_use_pch(${name} ${arg_PCH})
endfunction()

# cm384_test(NAME SOURCES ... [LINK ...] [LABELS ...] [DEFINE ...] [NEEDS target ...] [PARAMETERS ...] [ALONE]): a
# GoogleTest; the label is its tier (unit, formula, timing, system, validation). The further label `verify` takes a long
# one out of `./dev test`, and out of what is built for it: the target verify_tests has these. The target short_tests has
# those of unit, formula and timing, which run with the sanitizers as well.
#
# The tests of a folder are one program, `FOLDER_tests`, which saves each of them the reading of headers and a link; those
# that include a machine are a second one, the long ones a third. CTest and the target NAME know each test by itself. What
# further properties are set on is a program ALONE; with CM384_UNITY=OFF every test is. What takes too long at once has a test
# of its own, NAME.PARAMETER, for each of the PARAMETERS of its suite.
add_custom_target(verify_tests)
add_custom_target(short_tests)
# A test of one of these includes the machine.
set(machine_libraries cm384_machine_run cm384_studies cm384_host cm384_supernode cm384_operators cm384_doors)
set(test_lists SOURCES LINK DEFINE NEEDS)
function(cm384_test name)
  cmake_parse_arguments(arg "ALONE" "" "LABELS;PARAMETERS;${test_lists}" ${ARGN})
  if(NOT CM384_TESTS)
    return()
  endif()
  set(kind tests)
  foreach(library IN LISTS arg_LINK)
    if(library IN_LIST machine_libraries)
      set(kind machine_tests)
    endif()
  endforeach()
  set(program ${name})
  set(verify OFF)
  if("verify" IN_LIST arg_LABELS)
    set(verify ON)
  endif()
  if(CM384_UNITY AND NOT arg_ALONE)
    cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/testbenches OUTPUT_VARIABLE folder)
    string(REPLACE "/" "_" program ${folder}_${kind})
    if(verify)
      string(APPEND program _verify)
    endif()
    get_property(programs DIRECTORY PROPERTY cm384_test_programs)
    if(NOT programs)
      cmake_language(DEFER CALL cm384_test_programs)
    endif()
    if(NOT program IN_LIST programs)
      set_property(DIRECTORY APPEND PROPERTY cm384_test_programs ${program})
      set_property(DIRECTORY PROPERTY ${program}_kind ${kind} ${verify})
    endif()
    foreach(list IN LISTS test_lists)
      set_property(DIRECTORY APPEND PROPERTY ${program}_${list} ${arg_${list}})
    endforeach()
    add_custom_target(${name})
    add_dependencies(${name} ${program})
  else()
    cm384_test_program(${name} ${kind} ${verify} SOURCES ${arg_SOURCES} LINK ${arg_LINK} DEFINE ${arg_DEFINE} NEEDS ${arg_NEEDS})
  endif()
  if(NOT verify AND NOT "rtl" IN_LIST arg_LABELS AND arg_LABELS MATCHES "unit|formula|timing")
    add_dependencies(short_tests ${name})
  endif()
  set(selected)
  if((CM384_UNITY AND NOT arg_ALONE) OR arg_PARAMETERS)
    set(selected ${arg_SOURCES})
    list(FILTER selected INCLUDE REGEX "_test[.]cpp$")
    list(TRANSFORM selected PREPEND --source=)
  endif()
  set(timeout 600)
  if(verify)
    set(timeout 3600)
  endif()
  set(names ${name})
  if(arg_PARAMETERS)
    list(TRANSFORM arg_PARAMETERS PREPEND ${name}. OUTPUT_VARIABLE names)
  endif()
  foreach(test IN LISTS names)
    set(parameter)
    if(arg_PARAMETERS)
      string(REPLACE "${name}." --parameter= parameter ${test})
    endif()
    add_test(NAME ${test} COMMAND ${program} ${selected} ${parameter})
    set_tests_properties(${test} PROPERTIES TIMEOUT ${timeout} LABELS "${arg_LABELS}")
  endforeach()
endfunction()

# The programs of a folder, once all its tests are known.
function(cm384_test_programs)
  get_property(programs DIRECTORY PROPERTY cm384_test_programs)
  foreach(program IN LISTS programs)
    get_property(kind DIRECTORY PROPERTY ${program}_kind)
    set(arguments)
    foreach(list IN LISTS test_lists)
      get_property(values DIRECTORY PROPERTY ${program}_${list})
      list(REMOVE_DUPLICATES values)
      list(APPEND arguments ${list} ${values})
    endforeach()
    cm384_test_program(${program} ${kind} ${arguments})
  endforeach()
endfunction()

# Tests are long, and few of them change at a time.
set(unity_tests 8)
function(cm384_test_program name kind verify)
  cmake_parse_arguments(arg "" "" "${test_lists}" ${ARGN})
  find_package(GTest REQUIRED)
  set(headers ${std_headers} <fmt/format.h> <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>)
  set(libraries fmt::fmt GTest::gmock nlohmann_json::nlohmann_json)
  cm384_pch(tests HEADERS ${headers} LINK ${libraries} OPTIONS ${low_optimisation})
  cm384_pch(machine_tests HEADERS ${headers} "${CMAKE_SOURCE_DIR}/workloads/frame/session.h" LINK ${libraries} cm384_systemc
            OPTIONS ${low_optimisation})
  if(NOT TARGET cm384_test_main)
    add_library(cm384_test_main STATIC ${CMAKE_SOURCE_DIR}/testbenches/test_main.cpp)
    target_link_libraries(cm384_test_main PRIVATE cm384_flags PUBLIC GTest::gmock)
  endif()
  if(CM384_UNITY)
    set(tests ${arg_SOURCES})
    list(FILTER tests INCLUDE REGEX "_test[.]cpp$")
    list(FILTER arg_SOURCES EXCLUDE REGEX "_test[.]cpp$")
    set(unity_sources ${unity_tests})
    cm384_unity(tests ${name} ${tests})
    list(APPEND arg_SOURCES ${tests})
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE cm384_flags ${arg_LINK} cm384_test_main)
  target_compile_definitions(${name} PRIVATE ${arg_DEFINE})
  if(arg_NEEDS)
    add_dependencies(${name} ${arg_NEEDS})
  endif()
  cm384_use_pch(${name} ${kind})
  # Models are optimised for speed, tests for the time that they take to build.
  target_compile_options(${name} PRIVATE ${low_optimisation})
  # GCC 12 sees accesses out of bounds in concatenations of strings that are none (its bug 105651).
  target_compile_options(${name} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
  if(verify)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    add_dependencies(verify_tests ${name})
  endif()
endfunction()

# cm384_source_dir(NAME ...): what tests that read files of the project call its folder. For these alone: it would keep
# objects from being shared by checkouts in different folders.
function(cm384_source_dir)
  foreach(name IN LISTS ARGN)
    if(TARGET ${name})
      target_compile_definitions(${name} PRIVATE CM384_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    endif()
  endforeach()
endfunction()

# cm384_benchmark(NAME SOURCES ... [LINK ...]): a Google Benchmark program, run by `./dev bench`.
add_custom_target(benchmarks)
function(cm384_benchmark name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  find_package(benchmark QUIET)
  if(NOT benchmark_FOUND)
    return()
  endif()
  add_executable(${name} EXCLUDE_FROM_ALL ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE cm384_flags ${arg_LINK} benchmark::benchmark_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/benchmarks)
  add_dependencies(benchmarks ${name})
endfunction()
