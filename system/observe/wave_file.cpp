#include "system/observe/wave_file.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "base/text/error.h"
#include "base/text/output_file.h"
#include "system/observe/fst_wave_file.h"

namespace cm384::observe {
namespace {

class VcdFile final : public WaveFile {
 public:
  explicit VcdFile(const std::string& path)
      : file_(path, OutputFile::Compression::by_name), text_("$version cm384 $end\n$timescale 1 ps $end\n") {}

  void begin_scope(const std::string& name) override {
    text_ += fmt::format("$scope module {} $end\n", name);
  }
  void end_scope() override { text_ += "$upscope $end\n"; }
  std::size_t add_signal(const std::string& name, unsigned bits) override {
    signals_.push_back({code_of(signals_.size()), bits});
    text_ += fmt::format("$var {} {} {} {} $end\n", bits == 1 ? "wire" : "integer", bits,
                         signals_.back().code, name);
    return signals_.size() - 1;
  }
  void end_declarations() override { text_ += "$enddefinitions $end\n"; }

  void change(Time at, std::size_t number, std::uint64_t value) override {
    if (at != stamped_) fmt::format_to(std::back_inserter(text_), "#{}\n", at.ps);
    stamped_ = at;
    const Signal& signal = signals_[number];
    if (signal.bits == 1) {
      text_ += value != 0 ? '1' : '0';
    } else {
      fmt::format_to(std::back_inserter(text_), "b{:b} ", value);
    }
    text_ += signal.code;
    text_ += '\n';
    if (text_.size() >= kBuffer) flush();
  }
  void finish() override {
    flush();
    file_.finish();
  }

 private:
  static constexpr std::size_t kBuffer = 1u << 20;

  struct Signal {
    std::string code;  // in the file
    unsigned bits = 1;
  };

  // Short names of printable characters, as the format wants them.
  static std::string code_of(std::size_t number) {
    constexpr char kFirst = '!';
    constexpr std::size_t kCodes = 94;
    std::string code;
    do {
      code.push_back(static_cast<char>(kFirst + number % kCodes));
      number /= kCodes;
    } while (number != 0);
    return code;
  }
  void flush() {
    file_.write(text_);
    text_.clear();
  }

  OutputFile file_;
  std::string text_;
  std::vector<Signal> signals_;
  Time stamped_{-1};
};

}  // namespace

std::unique_ptr<WaveFile> WaveFile::create(const std::string& path) {
  if (path.ends_with(".fst")) return create_fst_file(path);
  return std::make_unique<VcdFile>(path);
}

}  // namespace cm384::observe
