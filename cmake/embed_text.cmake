# Script of cm384_embed: writes the texts of FILES (comma separated) into the C++ source OUTPUT.
string(REPLACE "," ";" files "${FILES}")
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND entries "    {\"${name}\", R\"cm384(${text})cm384\"sv},\n")
endforeach()
file(
  WRITE ${OUTPUT}
  "#include \"hw/embedded_text.h\"\n\nnamespace cm384::hw {\nnamespace {\nusing std::string_view_literals::operator\"\"sv;\nconstexpr EmbeddedText kTexts[] = {\n${entries}};\n}\n"
  "std::span<const EmbeddedText> ${FUNCTION}() {\n  return kTexts;\n}\n}\n")
