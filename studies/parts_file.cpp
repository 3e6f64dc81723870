#include "studies/parts_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "hw/error.h"
#include "hw/parameter_list.h"

namespace cm384::studies {
namespace {

constexpr std::string_view kFormat = "cm384-decode-parts-2";

const char* name_of(PartsFile::Section section) {
  return section == PartsFile::Section::steps ? "steps" : "alone";
}

Json empty_file() {
  return {{"format", kFormat}, {"steps", Json::object()}, {"alone", Json::object()}};
}

Json load(const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) return empty_file();
  std::ifstream file(path, std::ios::binary);
  Json json = Json::parse(file, nullptr, false);
  const auto is_object = [&](const char* name) { return json.contains(name) && json[name].is_object(); };
  if (!json.is_object() || json.value("format", Json()) != kFormat || !is_object("steps") ||
      (json.contains("alone") && !is_object("alone")))
    throw InputError(fmt::format("--measured {}: no parts of decode steps", path));
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
  if (!path_.empty() && !file_) file_.emplace(path_);
}

void PartsFile::add(Section section, const std::string& key, Json value) {
  added_[name_of(section)][key] = std::move(value);
}

void PartsFile::write() {
  if (!file_) return;
  all_ = load(path_);
  all_.merge_patch(added_);
  file_->write(all_.dump(1) + "\n");
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
