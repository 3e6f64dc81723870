#include "base/text/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/text/error.h"

namespace cm384 {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBuffer = std::size_t{1} << 18;
constexpr mode_t kMode = 0666;  // less the umask

std::atomic<bool> outputs_here = true;
bool written_here() {
  return outputs_here;
}
constexpr const char* kNowhere = "/dev/null";

[[noreturn]] void fail(const std::string& path, int error) {
  throw OutputError(fmt::format("{}: cannot be written: {}", path, std::generic_category().message(error)));
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Where the bytes go in the end: behind symbolic links, in a folder that exists.
std::string target_of(const std::string& path) {
  if (path.empty()) throw OutputError("'': cannot be written: an empty name");
  std::error_code error;
  fs::path target = path;
  constexpr int kMostLinks = 40;
  for (int links = 0; fs::is_symlink(target, error); ++links) {
    if (links == kMostLinks) fail(path, ELOOP);
    const fs::path to = fs::read_symlink(target, error);
    if (error) break;
    target = to.is_absolute() ? to : folder_of(target) / to;
  }
  fs::create_directories(folder_of(target), error);
  if (error) fail(path, error.value());
  if (fs::is_directory(target, error)) fail(path, EISDIR);
  return target.string();
}

// Files under a name of their own, which a signal's handler can walk through: a name is whole before it
// stands here.
constexpr std::size_t kMostUnfinished = 64;
std::array<std::atomic<char*>, kMostUnfinished> unfinished{};

void add_unfinished(const std::string& name) {
  char* const copy = strdup(name.c_str());
  for (std::atomic<char*>& place : unfinished) {
    char* free = nullptr;
    if (place.compare_exchange_strong(free, copy)) return;
  }
  std::free(copy);
}
void drop_unfinished(const std::string& name) {
  for (std::atomic<char*>& place : unfinished) {
    char* const there = place;
    if (there == nullptr || name != there) continue;
    place = nullptr;
    std::free(there);
    return;
  }
}

// A name of its own beside the target, and the open file.
int make_temporary(const std::string& target, std::string& name) {
  static std::atomic<unsigned> serial = 0;
  constexpr int kAttempts = 1000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    name = fmt::format("{}.{}-{}", target, getpid(), serial++);
    const int fd = open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kMode);
    if (fd >= 0) add_unfinished(name);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

// 1 or 2 where the name is that of the stream, as the system has it for every process.
int standard_stream(const std::string& path) {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    const char* const name = fd == STDOUT_FILENO ? "/dev/stdout" : "/dev/stderr";
    if (path == name || path == fmt::format("/dev/fd/{}", fd) || path == fmt::format("/proc/self/fd/{}", fd))
      return fd;
  }
  return -1;
}

void claim(const std::string& path, const std::string& target, RunFiles::Use use) {
  if (RunFiles* files = RunFiles::current()) files->add_output(path, target, use);
}
void forget_inode(const std::string& target) {
  if (RunFiles* files = RunFiles::current()) files->forget_inode(target);
}

bool is_device_or_pipe(const std::string& target) {
  struct stat status {};
  return stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

}  // namespace

struct OutputFile::Open {
  std::string path, target, temporary;  // temporary: empty where the file has no name yet, or is a device
  int fd = -1;
  bool direct = false;
  gzFile gzip = nullptr;
  std::string buffer;
  int error = 0;  // the first failure

  Open(const std::string& given, RunFiles::Use use) : path(given) {
    if (const int stream = standard_stream(path); stream >= 0) {
      direct = true;
      std::fflush(stream == STDOUT_FILENO ? stdout : stderr);
      fd = fcntl(stream, F_DUPFD_CLOEXEC, 0);
      if (fd < 0) fail(path, errno);
      return;
    }
    target = target_of(path);
    claim(path, target, use);
    direct = is_device_or_pipe(target);
    if (direct) {
      fd = open(target.c_str(), O_WRONLY | O_CLOEXEC);
    } else {
      // A file that is there and may not be written is not replaced either.
      if (access(target.c_str(), F_OK) == 0 && access(target.c_str(), W_OK) != 0) fail(path, errno);
      fd = open(folder_of(target).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode);
      if (fd < 0) fd = make_temporary(target, temporary);
    }
    if (fd < 0) fail(path, errno);
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  ~Open() {
    if (gzip != nullptr) gzclose(gzip);
    if (fd >= 0) close(fd);
    if (temporary.empty()) return;
    unlink(temporary.c_str());
    drop_unfinished(temporary);
  }

  void put(const char* bytes, std::size_t count) {
    while (count > 0 && error == 0) {
      const ssize_t done =
          gzip != nullptr
              ? gzwrite(gzip, bytes, static_cast<unsigned>(std::min<std::size_t>(count, 1u << 30)))
              : ::write(fd, bytes, count);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) {
        error = errno != 0 ? errno : EIO;
        return;
      }
      bytes += done;
      count -= static_cast<std::size_t>(done);
    }
  }
  void flush() {
    put(buffer.data(), buffer.size());
    buffer.clear();
  }
  void finish() {
    flush();
    if (gzip != nullptr) {
      errno = 0;
      if (gzclose(gzip) != Z_OK && error == 0) error = errno != 0 ? errno : EIO;
      gzip = nullptr;
    }
    if (error != 0) fail(path, error);
    if (direct) return close_file();
    if (temporary.empty()) give_name();
    close_file();
    if (rename(temporary.c_str(), target.c_str()) != 0) fail(path, errno);
    drop_unfinished(temporary);
    temporary.clear();
    forget_inode(target);
  }
  // The file without a name gets one of its own; only a rename replaces what is there in one step.
  void give_name() {
    const std::string self = fmt::format("/proc/self/fd/{}", fd);
    for (int attempt = 0; attempt < 1000; ++attempt) {
      const std::string name = fmt::format("{}.{}-{}", target, getpid(), attempt);
      if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        temporary = name;
        add_unfinished(name);
        return;
      }
      if (errno != EEXIST) fail(path, errno);
    }
    fail(path, EEXIST);
  }
  void close_file() {
    const int done = close(fd);
    fd = -1;
    if (done != 0) fail(path, errno);
  }
};

OutputFile::OutputFile(const std::string& path, Compression compression, RunFiles::Use use)
    : open_(std::make_unique<Open>(written_here() ? path : kNowhere, use)) {
  if (compression == Compression::none || !path.ends_with(".gz")) return;
  // Level 1: the simulation waits for it. zlib closes the file it is given.
  const int own = fcntl(open_->fd, F_DUPFD_CLOEXEC, 0);
  if (own >= 0) open_->gzip = gzdopen(own, "wb1");
  if (open_->gzip != nullptr) return;
  const int error = errno;
  if (own >= 0) close(own);
  fail(path, error);
}

OutputFile::~OutputFile() = default;

void OutputFile::write(std::string_view bytes) {
  written_ += bytes.size();
  open_->buffer += bytes;
  if (open_->buffer.size() >= kBuffer) open_->flush();
}

void OutputFile::finish() {
  const std::unique_ptr<Open> open = std::move(open_);
  open->finish();
}

NamedOutput::NamedOutput(const std::string& path, RunFiles::Use use) : path_(path) {
  if (!written_here()) throw OutputError(fmt::format("{}: only the first process writes it", path));
  const std::string target = target_of(path);
  claim(path, target, use);
  const int fd = make_temporary(target, name_);
  if (fd < 0) fail(path, errno);
  close(fd);
}

NamedOutput::~NamedOutput() {
  if (!committed_) unlink(name_.c_str());
  drop_unfinished(name_);
}

void NamedOutput::commit() {
  const std::string target = target_of(path_);
  if (rename(name_.c_str(), target.c_str()) != 0) fail(path_, errno);
  forget_inode(target);
  committed_ = true;
}

void remove_unfinished_outputs() {
  for (std::atomic<char*>& place : unfinished)
    if (char* const name = place) unlink(name);
}

void write_outputs_here(bool here) {
  outputs_here = here;
}

void write_file(const std::string& path, std::string_view content, RunFiles::Use use) {
  OutputFile file(path, OutputFile::Compression::none, use);
  file.write(content);
  file.finish();
}

}  // namespace cm384
