# cm384_embed(TARGET FUNCTION FILES...): compiles text files into TARGET, so that no path is needed at run time. Gives
# `std::span<const cm384::hw::EmbeddedText> cm384::hw::FUNCTION()`, in the order of FILES (see base/text/embedded_text.h).
function(cm384_embed target function)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  string(JOIN "," files ${ARGN})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DFUNCTION=${function} -DFILES=${files} -P
            ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake
    COMMENT "Embed ${function}")
  target_sources(${target} PRIVATE ${output})
endfunction()
