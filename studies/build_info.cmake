# Writes build_info.cpp, unless it stands there already.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "")
else()
  execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD RESULT_VARIABLE changed ERROR_QUIET)
  if(changed)
    string(APPEND commit "+changes")
  endif()
endif()
set(text
    "#include \"studies/build_info.h\"\n\nnamespace cm384::studies {\n\nconst BuildInfo& build_info() {\n  static constexpr BuildInfo info{\"${VERSION}\", \"${commit}\", \"${COMPILER}\", \"${BUILD_TYPE}\", \"${SANITIZERS}\"};\n  return info;\n}\n\n}  // namespace cm384::studies\n"
)
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
