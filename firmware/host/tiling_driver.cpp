// Runs the tiling function of a project's operator: KERNEL IMAGE STEM COLUMN VECTOR-CORES CUBE-CORES
// NAME=SHAPE.. writes STEM.tiling and STEM.toml, a program of `cm384 run program`. What is wrong is a line,
// and 2.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "cm384/operator.h"
#include "tiling/platform/platform_ascendc.h"

namespace {

[[noreturn]] void refuse(const std::string& why) {
  std::cerr << "cm384: kernel build: " << why << "\n";
  std::exit(2);
}
std::string plain(const std::string& name) {
  std::string made;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      made += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return made;
}
template <typename Map>
typename Map::const_iterator named(const Map& map, const std::string& kernel) {
  return std::find_if(map.begin(), map.end(),
                      [&](const auto& each) { return plain(each.first) == plain(kernel); });
}

// The element type of a buffer, and what fills it.
struct Element {
  const char *type, *fill;
};
Element element(ge::DataType type) {
  constexpr const char *kNumbers = "{random = \"uniform\", low = -1, high = 1, seed = 1}",
                       *kWhole = "{random = \"uniform\", low = 0, high = 7, seed = 1}";
  switch (type) {
    case ge::DT_FLOAT:
      return {"f32", kNumbers};
    case ge::DT_FLOAT16:
      return {"f16", kNumbers};
    case ge::DT_BF16:
      return {"bf16", kNumbers};
    case ge::DT_DOUBLE:
      return {"f64", kNumbers};
    case ge::DT_INT8:
      return {"i8", kWhole};
    case ge::DT_UINT8:
    case ge::DT_BOOL:
      return {"u8", "{random = \"uniform\", low = 0, high = 1, seed = 1}"};
    case ge::DT_INT16:
      return {"i16", kWhole};
    case ge::DT_UINT16:
      return {"u16", kWhole};
    case ge::DT_INT32:
      return {"i32", kWhole};
    case ge::DT_UINT32:
      return {"u32", kWhole};
    case ge::DT_INT64:
      return {"i64", kWhole};
    case ge::DT_UINT64:
      return {"u64", kWhole};
    default:
      refuse("an element type that there is not");
  }
}

gert::Shape shape_of(const std::string& name, const std::string& text) {
  gert::Shape made;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, 'x');) {
    char* end = nullptr;
    const long long dim = std::strtoll(part.c_str(), &end, 10);
    if (part.empty() || *end != '\0' || dim < 1)
      refuse("--shape " + name + "=" + text + ": not of the form 8x2048");
    made.AppendDim(dim);
  }
  return made;
}
// A number, true or false, a text, or whole numbers with x between.
void set_attribute(gert::RuntimeAttrs::Value& to, const std::string& name, const std::string& text) {
  const auto refused = [&](const char* wanted) {
    refuse("--shape " + name + "=" + text + ": is no " + wanted);
  };
  char* end = nullptr;
  if (to.is_text) {
    to.text = text;
  } else if (to.is_truth) {
    if (text != "true" && text != "false") refused("true or false");
    to.truth = text == "true";
  } else if (to.is_list) {
    to.list.values.clear();
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, 'x');) {
      to.list.values.push_back(std::strtoll(part.c_str(), &end, 10));
      if (part.empty() || *end != '\0') refused("list of whole numbers, as 1x7");
    }
  } else if (to.is_whole) {
    to.whole = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0') refused("whole number");
  } else {
    to.number = std::strtof(text.c_str(), &end);
    if (text.empty() || *end != '\0') refused("number");
  }
}
std::string text_of(const gert::Shape& shape) {
  std::string text;
  for (size_t n = 0; n < shape.GetDimNum(); ++n)
    text += (n == 0 ? "" : ", ") + std::to_string(shape.GetDim(n));
  return "[" + (text.empty() ? "1" : text) + "]";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  const std::string kernel = argv[1], image = argv[2], stem = argv[3];
  const auto column = static_cast<size_t>(std::atoi(argv[4]));
  cm384_host::cores[0] = static_cast<uint32_t>(std::atoi(argv[5]));
  cm384_host::cores[1] = static_cast<uint32_t>(std::atoi(argv[6]));
  std::map<std::string, std::string> given;
  for (int n = 7; n < argc; ++n) {
    const std::string text = argv[n];
    const size_t equal = text.find('=');
    if (equal == std::string::npos) refuse("--shape " + text + ": NAME=SHAPE is wanted, as x=8x2048");
    given[text.substr(0, equal)] = text.substr(equal + 1);
  }

  const auto& all = cm384_host::registered();
  auto found = named(all.definitions, kernel);
  if (found == all.definitions.end() && all.definitions.size() == 1) found = all.definitions.begin();
  if (found == all.definitions.end()) refuse("no OP_ADD of an operator for kernel " + kernel + " in op_host");
  const std::unique_ptr<ops::OpDef> op = found->second();
  cm384_host::TilingFunction tiling = op->AICore().tiling;
  if (const auto own = all.tilings.find(found->first); own != all.tilings.end()) tiling = own->second;
  if (tiling == nullptr) refuse(found->first + " has no tiling function");
  cm384_host::InferShapeFunction infer = op->infer_shape;
  if (const auto own = all.shapes.find(found->first); own != all.shapes.end()) infer = own->second;

  gert::TilingContext context;
  context.name = found->first;
  const auto describe = [&](const auto& list, auto& into) {
    for (const auto& each : list) {
      gert::ShapeContext::Given made;
      if (each->option == ops::DYNAMIC)
        refuse(each->name + ": DYNAMIC tensors are not there: docs/ascend-c.md");
      const ge::DataType type =
          each->types.empty() ? ge::DT_FLOAT : each->types[std::min(column, each->types.size() - 1)];
      const ge::Format format =
          each->formats.empty() ? ge::FORMAT_ND : each->formats[std::min(column, each->formats.size() - 1)];
      made.desc = {type, format};
      if (const auto shape = given.find(each->name); shape != given.end()) {
        made.there = true;
        made.shape.MutableStorageShape() = shape_of(each->name, shape->second);
        given.erase(shape);
      }
      made.tensor = {made.shape, made.desc};
      into.push_back(std::move(made));
    }
  };
  describe(op->inputs, context.inputs);
  describe(op->outputs, context.outputs);
  for (const auto& each : op->attributes) {
    if (const auto value = given.find(each->name); value != given.end()) {
      set_attribute(each->value(), each->name, value->second);
      given.erase(value);
    }
    context.attributes.values.push_back(each->value());
  }
  if (!given.empty())
    refuse("--shape " + given.begin()->first + ": " + found->first +
           " has no tensor or attribute of that name");
  for (size_t n = 0; n < context.inputs.size(); ++n) {
    if (!context.inputs[n].there && op->inputs[n]->option == ops::REQUIRED)
      refuse("--shape " + op->inputs[n]->name + "=..: is wanted, " + found->first + " has that input");
  }
  if (infer != nullptr) {
    gert::InferShapeContext shapes;
    static_cast<gert::ShapeContext&>(shapes) = context;
    if (infer(&shapes) != ge::GRAPH_SUCCESS) refuse("the project's InferShape refuses these shapes");
    for (size_t n = 0; n < context.outputs.size(); ++n) {
      if (!context.outputs[n].there) context.outputs[n].shape = shapes.outputs[n].shape;
      context.outputs[n].there = true;
    }
  }
  for (auto& output : context.outputs) {  // like the first input where nothing says it
    if (!output.there && !context.inputs.empty()) output.shape = context.inputs.front().shape;
    output.there = true;
    output.tensor = {output.shape, output.desc};
  }
  if (tiling(&context) != ge::GRAPH_SUCCESS) refuse("the project's tiling function refuses these shapes");

  gert::TilingData& data = *context.GetRawTilingData();
  std::ofstream(stem + ".tiling", std::ios::binary)
      .write(static_cast<const char*>(data.GetData()), static_cast<std::streamsize>(data.GetDataSize()));
  std::ofstream out(stem + ".toml");
  const auto file = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  out << "# " << found->first << " by its own tiling function: `cm384 run program " << file(stem)
      << ".toml`.\nranks = 1\n";
  std::string arguments;
  const auto buffers = [&](const auto& list, const auto& values, bool filled) {
    for (size_t n = 0; n < list.size(); ++n) {
      if (!values[n].there) {
        arguments += "0, ";
        continue;
      }
      const Element is = element(values[n].desc.GetDataType());
      out << "\n[[buffer]]\nname = \"" << list[n]->name << "\"\ntype = \"" << is.type
          << "\"\nshape = " << text_of(values[n].shape.GetStorageShape()) << "\n";
      if (filled) out << "fill = " << is.fill << "\n";
      arguments += "\"" + list[n]->name + "\", ";
    }
  };
  buffers(op->inputs, context.inputs, true);
  buffers(op->outputs, context.outputs, false);
  size_t workspace = 0;
  for (const size_t bytes : context.workspaces()) workspace += bytes;
  if (workspace != 0)
    out << "\n[[buffer]]\nname = \"workspace\"\ntype = \"u8\"\nshape = " << workspace << "\n";
  arguments += workspace != 0 ? "\"workspace\"" : "0";
  if (data.GetDataSize() != 0) {
    out << "\n[[buffer]]\nname = \"tiling\"\ntype = \"u8\"\nshape = " << data.GetDataSize()
        << "\nfill = {file = \"" << file(stem) << ".tiling\"}\n";
    arguments += ", \"tiling\"";
  } else {
    arguments += ", 0";
  }
  out << "\n[[launch]]\nkernel = \"" << file(image) << "\"\nblocks = " << context.GetBlockDim()
      << "\narguments = [" << arguments << "]\n";
  if (context.GetTilingKey() != 0) out << "tiling_key = " << context.GetTilingKey() << "\n";
  for (const auto& output : op->outputs)
    out << "\n[[save]]\nbuffer = \"" << output->name << "\"\nfile = \"" << output->name << ".npy\"\n";
  out.flush();
  if (!out) refuse(stem + ".toml: cannot be written");
  std::cout << stem << ".toml: " << context.GetBlockDim() << " blocks, tiling key " << context.GetTilingKey()
            << ", " << data.GetDataSize() << " B of tiling data, " << workspace << " B of workspace\n";
  return 0;
}
