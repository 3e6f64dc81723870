// A kernel's source as the cross-compiler gets it: what is of the host left out, the structures of its tiling
// data and the macros of its dtype column added, a template instantiated.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/kernel_project.h"
#include "app/cli/kernel_template.h"

namespace cm384::cli {

// What a project's own build would say; options of `kernel build` and `kernel check`.
struct ProjectChoice {
  std::vector<std::string> tiling;     // files that define tiling data; none: those of the project
  std::vector<std::string> arguments;  // --template
  std::string key;                     // tiling key; empty: any
  int column = 0;                      // of element types
};

class KernelFront {
 public:
  // Reads the project around `source`. Of several kernels only `entry` stays; empty: all. Throws InputError
  // for a column that there is not.
  KernelFront(const std::string& source, const ProjectChoice& choice, const std::string& entry);

  const std::string& text() const { return text_; }      // of the source, with its lines
  const std::string& tiling() const { return tiling_; }  // a header that is included first; empty: none
  const std::vector<std::string>& define() const { return define_; }
  // A sentence about what was chosen automatically; empty: nothing was.
  std::string chosen() const;

  // Whether a kernel of the source, or the one named `entry`, is a template.
  bool is_template(const std::string& entry) const { return entry_of(entry) != nullptr; }
  // Whether there are kernels that are no templates.
  bool has_others() const;
  // Instantiates it. `words`: the command line up to the source. Where the preprocessor fails, nothing is
  // done. `of_sets`: only where ASCENDC_TPL_SEL says what there is.
  void instantiate(const std::string& entry, std::vector<std::string> words,
                   const std::filesystem::path& scratch, bool of_sets = false);
  // Has the only kernel of the source, the one named `entry`, or the template's instance called by its types
  // where its arguments are not all words; `words` as above. True: it is.
  bool call_by_types(const std::string& entry, std::vector<std::string> words,
                     const std::filesystem::path& scratch);
  // Name of the template that was instantiated; empty: none was.
  const std::string& instance() const { return instance_; }
  // Kind of cores that the template's combination says: as --type; empty: it says none.
  const std::string& kind() const { return kind_; }

 private:
  const TemplateEntry* entry_of(const std::string& entry) const;
  // Of the kernel whose arguments may have types, as an expression has it; empty: none may.
  std::string name_with_types(const std::string& entry) const;

  const ProjectChoice& choice_;
  std::string text_, tiling_, instance_, instance_type_, kind_, column_, combination_;
  std::vector<std::string> define_;
  std::vector<TemplateEntry> templates_;
};

}  // namespace cm384::cli
