#include "workloads/layer/parts_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/text/error.h"
#include "base/text/input_file.h"
#include "base/text/parameter_list.h"
#include "base/text/sealed_json.h"
#include "base/text/standard_error.h"

namespace cm384::studies {
namespace {

constexpr std::string_view kFormat = "cm384-decode-parts-3", kUnchecked = "cm384-decode-parts-2";

const char* name_of(PartsFile::Section section) {
  return section == PartsFile::Section::steps ? "steps" : "alone";
}

Json empty_file() {
  return {{"format", kFormat}, {"steps", Json::object()}, {"alone", Json::object()}};
}

Json load(const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) return empty_file();
  Json json = Json::parse(read_input(path), nullptr, false);
  const auto is_object = [&](const char* name) { return json.contains(name) && json[name].is_object(); };
  const Json format = json.is_object() ? json.value("format", Json()) : Json();
  if ((format != kFormat && format != kUnchecked) || !is_object("steps") ||
      (json.contains("alone") && !is_object("alone")))
    throw InputError(fmt::format("--measured {}: no parts of decode steps", path));
  if (!has_good_checksum(json, path)) {
    if (format == kFormat) throw InputError(fmt::format("--measured {}: has no checksum", path));
    print_error("cm384: {}: has no checksum, as files of earlier versions: it cannot be checked for damage\n",
                path);
  }
  json["format"] = kFormat;
  json.erase(kChecksum);
  return json;
}

}  // namespace

PartsFile::PartsFile(std::string path) : path_(std::move(path)), all_(load(path_)), added_(empty_file()) {}

const Json* PartsFile::find(Section section, const std::string& key) const {
  const auto part = all_.find(name_of(section));
  if (part == all_.end()) return nullptr;
  const auto found = part->find(key);
  return found == part->end() ? nullptr : &*found;
}

void PartsFile::open() {
  if (!path_.empty() && !file_) file_.emplace(path_, OutputFile::Compression::none, RunFiles::Use::renewed);
}

void PartsFile::add(Section section, const std::string& key, Json value) {
  added_[name_of(section)][key] = std::move(value);
}

void PartsFile::write() {
  if (!file_) return;
  all_ = load(path_);
  all_.merge_patch(added_);
  Json sealed = all_;
  sealed[kChecksum] = checksum_of(all_);
  file_->write(sealed.dump(1) + "\n");
  file_->finish();
  file_.reset();
}

std::string machine_text(hw::Machine machine) {
  std::string text;
  for (const hw::Parameter& parameter : hw::list_parameters(machine))
    text += parameter.key + " = " + hw::value_text(parameter) + "\n";
  return text;
}

}  // namespace cm384::studies
