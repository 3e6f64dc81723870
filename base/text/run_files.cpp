#include "base/text/run_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/text/error.h"

namespace cm384 {
namespace {

namespace fs = std::filesystem;

std::atomic<RunFiles*> present = nullptr;

bool is_memory_device(const struct stat& status) {  // /dev/null, /dev/full and their like
  constexpr unsigned kMemory = 1;
  return S_ISCHR(status.st_mode) && major(status.st_rdev) == kMemory;
}

std::string whole_name(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const fs::path folder = fs::weakly_canonical(absolute.parent_path(), error);
  return error ? absolute.lexically_normal().string() : (folder / absolute.filename()).string();
}

// Behind links as well.
std::string name_of_input(const std::string& path) {
  std::error_code error;
  const fs::path canonical = fs::canonical(path, error);
  return error ? whole_name(path) : canonical.string();
}

}  // namespace

struct RunFiles::State {
  using Inode = std::pair<dev_t, ino_t>;
  enum class Part : std::uint8_t { input, tried, output, renewed, stream };
  struct Entry {
    std::string given, name;  // as the user has it; behind symbolic links, empty: a stream
    std::optional<Inode> inode;
    Part part = Part::input;
    bool open = false;  // of what is renewed: by its writer
  };

  std::mutex mutex;
  std::vector<Entry> entries;
  bool working = false;

  void add_stream(int fd, const char* name) {
    struct stat status {};
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
      entries.push_back({name, "", Inode{status.st_dev, status.st_ino}, Part::stream});
  }
  static bool same(const Entry& known, const std::string& name, const std::optional<Inode>& inode) {
    return (!known.name.empty() && known.name == name) || (known.inode && known.inode == inode);
  }
};

RunFiles::RunFiles() : state_(std::make_unique<State>()), before_(present.exchange(this)) {
  state_->add_stream(STDOUT_FILENO, "standard output");
  state_->add_stream(STDERR_FILENO, "standard error");
}

RunFiles::~RunFiles() {
  present = before_;
}

RunFiles* RunFiles::current() {
  return present;
}

void RunFiles::begin_work() {
  const std::lock_guard lock(state_->mutex);
  state_->working = true;
}

void RunFiles::add_input(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  const State::Inode inode{status.st_dev, status.st_ino};
  const std::string name = name_of_input(path);
  const std::lock_guard lock(state_->mutex);
  for (const State::Entry& known : state_->entries) {
    if (!State::same(known, name, inode)) continue;
    if (known.part == State::Part::input && known.name == name) return;
    if (known.part == State::Part::stream)
      throw InputError(fmt::format("{}: is where {} goes; allowed: another file", path, known.given));
    if (known.part == State::Part::tried || known.part == State::Part::output)
      throw InputError(fmt::format(
          "{}: is an output of this run ({}) and read by it; allowed: another name for one of them", path,
          known.given));
  }
  state_->entries.push_back({path, name, inode, State::Part::input});
}

void RunFiles::add_output(const std::string& path, const std::string& target, Use use) {
  struct stat status {};
  std::optional<State::Inode> inode;
  if (stat(target.c_str(), &status) == 0) {
    if (is_memory_device(status)) return;
    inode = State::Inode{status.st_dev, status.st_ino};
  }
  const std::string name = whole_name(target);
  const std::lock_guard lock(state_->mutex);
  // Who was told that a file is renewed has one writer that need not know of it.
  const auto is_announced = [&](const State::Entry& known) {
    return known.part == State::Part::renewed && !known.open && State::same(known, name, inode);
  };
  if (const auto announced = std::ranges::find_if(state_->entries, is_announced);
      use == Use::written && announced != state_->entries.end()) {
    announced->open = true;
    return;
  }
  for (State::Entry& known : state_->entries) {
    if (!State::same(known, name, inode)) continue;
    switch (known.part) {
      case State::Part::stream:
        throw InputError(fmt::format("{}: is where {} goes; allowed: another file", path, known.given));
      case State::Part::input:
        if (use == Use::renewed) continue;
        throw InputError(
            fmt::format("{}: is read by this run ({}) and would be overwritten; allowed: another name", path,
                        known.given));
      case State::Part::renewed:
        if (use == Use::renewed) return;
        break;
      case State::Part::tried:
        if (use != Use::written || !state_->working) break;
        known.part = State::Part::output;
        return;
      case State::Part::output:
        break;
    }
    throw InputError(fmt::format("{}: two outputs of this run have this name ({}); allowed: a name for each",
                                 path, known.given));
  }
  const State::Part part = use == Use::tried     ? State::Part::tried
                           : use == Use::written ? State::Part::output
                                                 : State::Part::renewed;
  state_->entries.push_back({path, name, inode, part});
}

void RunFiles::forget_inode(const std::string& target) {
  const std::string name = whole_name(target);
  const std::lock_guard lock(state_->mutex);
  for (State::Entry& known : state_->entries)
    if (known.name == name) known.inode.reset();
}

}  // namespace cm384
