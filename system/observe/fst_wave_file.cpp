// FST by the writer that comes with Verilator, which is GTKWave's own.
#include "system/observe/fst_wave_file.h"

#include <fmt/format.h>
#include <gtkwave/fstapi.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/text/error.h"
#include "base/text/output_file.h"

namespace cm384::observe {
namespace {

class FstWaveFile final : public WaveFile {
 public:
  explicit FstWaveFile(const std::string& path)
      : file_(path), writer_(fstWriterCreate(file_.name().c_str(), 1)) {
    if (writer_ == nullptr) throw OutputError(fmt::format("{}: cannot be written", path));
    constexpr int kPicoseconds = -12;
    fstWriterSetTimescale(writer_, kPicoseconds);
    fstWriterSetVersion(writer_, "cm384");
    // Otherwise the present second stands in the file.
    fstWriterSetDate(writer_, "");
  }
  ~FstWaveFile() override { close(); }
  FstWaveFile(const FstWaveFile&) = delete;
  FstWaveFile& operator=(const FstWaveFile&) = delete;

  void begin_scope(const std::string& name) override {
    fstWriterSetScope(writer_, FST_ST_VCD_MODULE, name.c_str(), nullptr);
  }
  void end_scope() override { fstWriterSetUpscope(writer_); }
  std::size_t add_signal(const std::string& name, unsigned bits) override {
    const fstVarType type = bits == 1 ? FST_VT_VCD_WIRE : FST_VT_VCD_INTEGER;
    handles_.push_back({fstWriterCreateVar(writer_, type, FST_VD_IMPLICIT, bits, name.c_str(), 0), bits});
    return handles_.size() - 1;
  }
  void end_declarations() override {}

  void change(Time at, std::size_t number, std::uint64_t value) override {
    if (at != stamped_) fstWriterEmitTimeChange(writer_, static_cast<std::uint64_t>(at.ps));
    stamped_ = at;
    const Handle& signal = handles_[number];
    fstWriterEmitValueChange64(writer_, signal.handle, signal.bits, value);
  }

  // The writer says nothing of a disk that is full.
  void finish() override {
    close();
    std::error_code error;
    if (std::filesystem::file_size(file_.name(), error) == 0 || error)
      throw OutputError(
          fmt::format("{}: cannot be written: {}", file_.path(), std::generic_category().message(ENOSPC)));
    file_.commit();
  }

 private:
  struct Handle {
    fstHandle handle = 0;
    unsigned bits = 1;
  };
  void close() {
    if (writer_ != nullptr) fstWriterClose(writer_);
    writer_ = nullptr;
    std::error_code ignored;
    std::filesystem::remove(file_.name() + ".hier", ignored);
  }

  NamedOutput file_;
  void* writer_;
  std::vector<Handle> handles_;
  Time stamped_{-1};
};

}  // namespace

std::unique_ptr<WaveFile> create_fst_file(const std::string& path) {
  return std::make_unique<FstWaveFile>(path);
}

}  // namespace cm384::observe
