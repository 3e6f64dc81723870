# find_package(ASC): the functions, and the language ASC, whose sources `cm384 kernel build --host` compiles.
list(PREPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
include(${CMAKE_CURRENT_LIST_DIR}/../../../compiler/tikcpp/ascendc_kernel_cmake/ascendc.cmake)
set(ASC_FOUND TRUE)
