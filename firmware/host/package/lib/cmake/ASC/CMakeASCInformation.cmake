# Programs with such a source are made whole at the end of their folder (ascendc.cmake): nothing is compiled alone.
set(CMAKE_ASC_COMPILE_OBJECT "${CMAKE_COMMAND} -E touch <OBJECT>")
set(CMAKE_ASC_LINK_EXECUTABLE "${CMAKE_COMMAND} -E touch <TARGET>")
set(CMAKE_ASC_INFORMATION_LOADED 1)
