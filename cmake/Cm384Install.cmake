# What a program of SystemC's kind needs of an installed tree: libraries, headers and find_package(cm384); docs/tlm.md.
#
#     cm384_install_libraries(TARGET ...)     these and all of ours that they stand on, as cm384::NAME for cm384_NAME
#
# They are the component `dev`: `cmake --install build/release --component dev` takes no more than them.

function(cm384_install_libraries)
  set(left ${ARGN})
  set(all)
  while(left)
    list(POP_FRONT left target)
    if(target IN_LIST all)
      continue()
    endif()
    list(APPEND all ${target})
    get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
    foreach(link IN LISTS links)
      string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" link "${link}")
      if(TARGET "${link}" AND link MATCHES "^cm384_")
        list(APPEND left ${link})
      endif()
    endforeach()
  endwhile()
  foreach(target IN LISTS all)
    string(REGEX REPLACE "^cm384_" "" name ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  endforeach()
  install(TARGETS ${all} EXPORT cm384 ARCHIVE DESTINATION lib/cm384 COMPONENT dev)
  install(EXPORT cm384 NAMESPACE cm384:: FILE cm384Targets.cmake DESTINATION lib/cmake/cm384 COMPONENT dev)
endfunction()

include(CMakePackageConfigHelpers)
set(config ${CMAKE_BINARY_DIR}/cm384Config.cmake)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/cm384Config.cmake.in ${config}
                              INSTALL_DESTINATION lib/cmake/cm384)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cm384ConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${config} ${CMAKE_BINARY_DIR}/cm384ConfigVersion.cmake DESTINATION lib/cmake/cm384 COMPONENT dev)
foreach(room base hw firmware ub_fabric npu_core traces system)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/${room} DESTINATION include/cm384 COMPONENT dev
          FILES_MATCHING PATTERN "*.h" PATTERN "rtl" EXCLUDE)
endforeach()

# For `cm384 rtl build`: the RTL to begin with, its bench, and what a library of chips is linked with.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/hw/rtl/ub_switch DESTINATION share/cm384/rtl FILES_MATCHING PATTERN "*.sv")
install(FILES ${CMAKE_SOURCE_DIR}/testbenches/hw/rtl/harness.h DESTINATION include/cm384/testbenches/hw/rtl COMPONENT dev)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/testbenches/hw/rtl/ub_switch DESTINATION include/cm384/testbenches/hw/rtl COMPONENT dev
        FILES_MATCHING PATTERN "switch_*" PATTERN "plan.toml")
install(FILES ${CMAKE_SOURCE_DIR}/ub_fabric/own_chip_library.cpp ${CMAKE_SOURCE_DIR}/ub_fabric/fst_file.cpp
        DESTINATION include/cm384/ub_fabric COMPONENT dev)
if(VERILATOR)
  install(TARGETS cm384_verilated_runtime ARCHIVE DESTINATION lib/cm384 COMPONENT dev)
endif()
