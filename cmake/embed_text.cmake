# Script of cm384_embed: writes the texts of FILES (comma separated) into the C++ source OUTPUT.
string(REPLACE "," ";" files "${FILES}")
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WLE)
  file(READ ${file} text)
  string(APPEND entries "    {\"${name}\", R\"cm384(${text})cm384\"sv},\n")
endforeach()
file(
  WRITE ${OUTPUT}
  "#include \"base/text/embedded_text.h\"\n\nnamespace cm384::hw {\n\nstd::span<const EmbeddedText> ${FUNCTION}() {\n  using std::string_view_literals::operator\"\"sv;\n  static constexpr EmbeddedText kTexts[] = {\n${entries}};\n  return kTexts;\n}\n\n}\n")
