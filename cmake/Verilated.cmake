# SystemVerilog of hw/rtl: into C++ by Verilator, its lint, and Yosys as the check that it can be synthesised.
# Verilator 5.006 and Yosys 0.23 are what Debian 12 has; the RTL keeps to the subset that both read.
#
#     cm384_rtl_block(BLOCK TOP module SOURCES a.sv b.sv)
#         A block of hw/rtl: packages first, then modules, relative to the calling folder.
#     cm384_verilated(NAME BLOCK block [FAST] [WIDE] [PARAMETERS Ports=4 Lanes=2] [COVERAGE] [TRACE] [SHARED])
#         Library NAME with class V<NAME> in header V<NAME>.h. Assertions are on. COVERAGE counts lines and toggles
#         and costs speed. TRACE can write FST waves at run time; while it writes none it costs only time to compile.
#         SHARED is for a shared library.
#         FAST leaves assertions out, for a model that stands in a machine; benches have them on. WIDE is for vectors
#         of thousands of bits that are put together from parts.
#     cm384_rtl_lint(NAME BLOCK block [PARAMETERS ...])
#         Test NAME_lint: every warning of Verilator is an error.
#     cm384_rtl_synthesis(NAME BLOCK block [PARAMETERS ...] [GATES] [LONG])
#         Test NAME_synthesis: Yosys elaborates, maps memories and flip-flops, finds no latch, no loop and no wire with
#         two drivers, and writes the cell counts to NAME.cells in the build folder. GATES maps to gates too, which
#         takes minutes for a wide module. LONG puts the test into the long tier.
include_guard()

find_program(VERILATOR verilator)
find_program(YOSYS yosys)

if(VERILATOR)
  execute_process(COMMAND ${VERILATOR} --getenv VERILATOR_ROOT OUTPUT_VARIABLE VERILATOR_ROOT
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  find_package(ZLIB REQUIRED)
  # Verilator's own sources, compiled once: not held to our warnings.
  set(runtime ${VERILATOR_ROOT}/include)
  add_library(cm384_verilated_runtime STATIC ${runtime}/verilated.cpp ${runtime}/verilated_threads.cpp
                                             ${runtime}/verilated_cov.cpp ${runtime}/verilated_fst_c.cpp)
  target_include_directories(cm384_verilated_runtime SYSTEM PUBLIC ${runtime} ${runtime}/vltstd)
  target_compile_definitions(cm384_verilated_runtime PUBLIC VM_COVERAGE=1 VM_SC=0 VM_TRACE=1 VM_TRACE_FST=1
                                                            VM_TRACE_VCD=0 VL_TIME_CONTEXT)
  target_compile_options(cm384_verilated_runtime PRIVATE -w -O2 -g0)
  set_target_properties(cm384_verilated_runtime PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(cm384_verilated_runtime PUBLIC ZLIB::ZLIB Threads::Threads)
  if(CM384_SANITIZE)
    target_compile_options(cm384_verilated_runtime PRIVATE -fsanitize=${CM384_SANITIZE})
  endif()
endif()

function(cm384_rtl_block block)
  cmake_parse_arguments(rtl "" "TOP" "SOURCES" ${ARGN})
  list(TRANSFORM rtl_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL PROPERTY cm384_rtl_${block}_top ${rtl_TOP})
  set_property(GLOBAL PROPERTY cm384_rtl_${block}_sources ${rtl_SOURCES})
endfunction()

# Sets, in the caller: rtl_TOP, rtl_SOURCES, rtl_overrides (-GName=value ...).
macro(cm384_rtl_arguments)
  cmake_parse_arguments(rtl "COVERAGE;TRACE;GATES;FAST;WIDE;LONG;SHARED" "BLOCK" "PARAMETERS" ${ARGN})
  get_property(rtl_TOP GLOBAL PROPERTY cm384_rtl_${rtl_BLOCK}_top)
  get_property(rtl_SOURCES GLOBAL PROPERTY cm384_rtl_${rtl_BLOCK}_sources)
  if(NOT rtl_SOURCES)
    message(FATAL_ERROR "no RTL block '${rtl_BLOCK}'")
  endif()
  set(rtl_overrides ${rtl_PARAMETERS})
  list(TRANSFORM rtl_overrides PREPEND -G)
endmacro()

function(cm384_verilated name)
  cm384_rtl_arguments(${ARGN})
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name}.verilated)
  # In one file: a wide block's header is long, and each file reads it.
  set(flags --cc --build -j 1 -Wall --x-assign fast --x-initial fast -O3 --output-split 100000000 --top-module ${rtl_TOP}
            --prefix V${name} --Mdir ${folder} ${rtl_overrides})
  if(rtl_WIDE)
    # Without the data-flow optimiser, which puts a wide vector together from its parts by ever longer concatenations:
    # a switch of 48 ports is 100 times as fast.
    list(APPEND flags -fno-dfg)
  endif()
  if(NOT rtl_FAST)
    list(APPEND flags --assert)
  endif()
  if(rtl_COVERAGE)
    list(APPEND flags --coverage-line --coverage-toggle)
  endif()
  if(rtl_TRACE)
    list(APPEND flags --trace-fst --trace-structs)
  endif()
  set(cflags "-g0 -w -std=c++20 -ffp-contract=off -DVL_TIME_CONTEXT")
  if(rtl_SHARED)
    string(APPEND cflags " -fPIC")
  endif()
  if(CM384_SANITIZE)
    string(APPEND cflags " -fsanitize=${CM384_SANITIZE}")
  endif()
  # A machine with two chips as RTL runs as fast with -O1 as with -O2, which takes twice the time to compile; a bench runs
  # some seconds, and takes a minute longer to compile with -O1 than without.
  if(rtl_FAST)
    set(optimise -O1)
  else()
    set(optimise -O0)
  endif()
  set(archive ${folder}/V${name}__ALL.a)
  add_custom_command(
    OUTPUT ${archive} ${folder}/V${name}.h
    COMMAND
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 OBJCACHE=$<$<BOOL:${CCACHE}>:${CCACHE}>
      OPT_FAST=${optimise} OPT_GLOBAL=${optimise} OPT_SLOW=-O0 MAKEFLAGS= bash ${CMAKE_SOURCE_DIR}/cmake/quiet ${folder}.log
      ${VERILATOR} ${flags} -CFLAGS ${cflags} -MAKEFLAGS -e ${rtl_SOURCES}
    DEPENDS ${rtl_SOURCES}
    COMMENT "Verilating ${name}"
    VERBATIM)
  add_custom_target(${name}.verilate DEPENDS ${archive} ${folder}/V${name}.h)
  add_library(${name} INTERFACE)
  add_dependencies(${name} ${name}.verilate)
  target_include_directories(${name} SYSTEM INTERFACE ${folder})
  target_link_libraries(${name} INTERFACE ${archive} cm384_verilated_runtime)
endfunction()

function(cm384_rtl_lint name)
  cm384_rtl_arguments(${ARGN})
  if(NOT CM384_TESTS)
    return()
  endif()
  add_test(NAME ${name}_lint COMMAND ${VERILATOR} --lint-only -Wall --assert --top-module ${rtl_TOP}
                                     ${rtl_overrides} ${rtl_SOURCES})
  set_tests_properties(${name}_lint PROPERTIES LABELS "unit;rtl" TIMEOUT 120)
endfunction()

function(cm384_rtl_synthesis name)
  cm384_rtl_arguments(${ARGN})
  if(NOT CM384_TESTS)
    return()
  endif()
  list(JOIN rtl_SOURCES " " files)
  set(chosen)
  foreach(parameter ${rtl_PARAMETERS})
    string(REPLACE "=" " " pair ${parameter})
    string(APPEND chosen " -set ${pair}")
  endforeach()
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${name}.ys)
  set(steps "read_verilog -sv -defer ${files}\n")
  if(chosen)
    string(APPEND steps "chparam${chosen} ${rtl_TOP}\n")
  endif()
  string(APPEND steps "hierarchy -check -top ${rtl_TOP}\nproc\nopt\nmemory -nomap\nopt -full\ncheck -assert\n"
         "select -assert-none t:$dlatch t:$_DLATCH_*\n")
  if(rtl_GATES)
    string(APPEND steps "synth -run fine:check\n")
  endif()
  string(APPEND steps "flatten\nopt_clean -purge\nstat\n")
  file(WRITE ${script} ${steps})
  add_test(NAME ${name}_synthesis COMMAND ${YOSYS} -q -e "." -l ${CMAKE_CURRENT_BINARY_DIR}/${name}.cells -s ${script})
  set_tests_properties(${name}_synthesis PROPERTIES LABELS "unit;rtl" TIMEOUT 600)
  if(rtl_LONG)
    set_tests_properties(${name}_synthesis PROPERTIES LABELS "unit;rtl;verify" TIMEOUT 3600)
  endif()
endfunction()
