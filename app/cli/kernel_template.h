// The choice of template arguments that a kernel is built with: what ASCENDC_TPL_ARGS_DECL declares and
// ASCENDC_TPL_SEL allows, read behind the preprocessor.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/cli/kernel_source.h"

namespace cm384::cli {

// "D_X=half,FAST=1": names and values in order. Throws InputError for what is neither.
using TemplateChoice = std::vector<std::pair<std::string, std::string>>;
TemplateChoice template_choice(const std::vector<std::string>& given);

class TemplateSets {
 public:
  struct Parameter {
    std::string name;
    bool of_type = false;  // DTYPE or DATATYPE: values are numbers of element types
    bool of_kind = false;  // KERNEL_TYPE: kinds of cores
    std::vector<std::string> values;
  };
  struct Set {
    std::vector<Parameter> parameters;
    std::string tiling;  // structure of tiling data
  };

  // `text`: what the preprocessor has made of a source, with CM384_TEMPLATE_SETS defined. Values are what
  // their macros stand for.
  explicit TemplateSets(std::string_view text);

  bool empty() const { return declared_.empty(); }
  // The first combination that is allowed and has these values; parameters in the declared order, each with
  // one value. Throws InputError, which lists the sets, where there is none.
  Set choose(const TemplateChoice& choice) const;
  // "D_X in {half, float}, FAST in {0, 1}; or D_X in ..".
  std::string text() const;
  // A value as it is shown: an element type by its name.
  static std::string shown(const Parameter& parameter, const std::string& value);

 private:
  std::vector<Parameter> declared_;
  std::vector<Set> sets_;
};

// What is compiled behind a source so that the kernel is `entry` with these arguments.
std::string instance_of(const TemplateEntry& entry, const std::vector<std::string>& arguments);
// The arguments of `entry` for a combination of sets; with no sets those of `choice` itself. Throws
// InputError where a parameter has no value.
std::vector<std::string> template_arguments(const TemplateEntry& entry, const TemplateSets& sets,
                                            const TemplateSets::Set& chosen, const TemplateChoice& choice);

}  // namespace cm384::cli
