// What an operator project says around a kernel: the structures of its tiling data (BEGIN_TILING_DATA_DEF)
// and the columns of element types of its definition (class X : public OpDef), read in the sources of
// op_host.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cm384::cli {

struct OperatorDefinition {
  struct Tensor {
    std::string name;
    std::vector<std::string> types, formats;  // "DT_FLOAT16", "FORMAT_ND": one a column
  };
  std::string type;  // the operator's, "AddCustom"
  std::vector<Tensor> tensors;
  std::size_t columns() const;
  // "x half, y half".
  std::string column_text(std::size_t column) const;
  // DTYPE_X=half, ORIG_DTYPE_X=DT_FLOAT16, FORMAT_X=FORMAT_ND of each tensor.
  std::vector<std::string> macros(std::size_t column) const;
};

// The project's folder of a kernel's source: the one that has op_host, of the folders above it.
std::optional<std::filesystem::path> project_of(const std::filesystem::path& source);
// C++ in op_host (and beside it, in op_tiling) of a project.
std::vector<std::string> host_sources(const std::filesystem::path& project);

// Finds all definitions in these sources.
std::vector<OperatorDefinition> operator_definitions(const std::vector<std::string>& sources);
// Whether add_custom is the kernel of AddCustom.
bool is_name_of(const std::string& type, const std::string& kernel);
// Of `kernel`, by its name: add_custom is of AddCustom; null: of none.
const OperatorDefinition* definition_of(const std::vector<OperatorDefinition>& all,
                                        const std::string& kernel);

// A header with the structures that these sources define and, for GET_TILING_DATA, which of them the kernel
// has by default: what is registered for its operator, or for its operator and `key`. Empty: they define
// none.
std::string tiling_header(const std::vector<std::string>& sources, const std::string& kernel,
                          const std::string& key);

// The C++ type of DT_FLOAT16; empty for one that there is not.
std::string element_type(const std::string& data_type);
// The number of DT_FLOAT16 in a template's key; -1 for one that there is not.
int data_type_number(const std::string& data_type);
// The C++ type of such a number; empty for one that there is not.
std::string element_type(int number);

}  // namespace cm384::cli
