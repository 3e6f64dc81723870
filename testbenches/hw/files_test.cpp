// Files that a run reads and writes: what is no file, what is too large, and outputs on inputs or other
// outputs.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/text/input_file.h"
#include "base/text/output_file.h"
#include "base/text/run_files.h"
#include "base/text/sealed_json.h"
#include "testbenches/hw/refusal.h"

namespace cm384::files_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Use = RunFiles::Use;

class Files : public ::testing::Test {
 protected:
  Files() { fs::create_directories(folder_); }
  ~Files() override { fs::remove_all(folder_); }
  std::string in(const std::string& name) const { return (folder_ / name).string(); }
  std::string with(const std::string& name, const std::string& text) const {
    std::ofstream(in(name), std::ios::binary) << text;
    return in(name);
  }
  fs::path folder_ = fs::path(::testing::TempDir()) / ("cm384_files_" + std::to_string(getpid()));
};

TEST_F(Files, InputsThatAreNoneAreRefusedInALine) {
  EXPECT_THAT(refusal([] { read_input("/dev/zero"); }), HasSubstr("/dev/zero: is a device"));
  EXPECT_THAT(refusal([&] { read_input(folder_.string()); }), HasSubstr("is a folder; allowed: a file"));
  EXPECT_THAT(refusal([&] { read_input(in("none")); }), HasSubstr("none: cannot be read: No such file"));
  EXPECT_THAT(refusal([] { read_input(std::string(5000, 'x')); }), HasSubstr("File name too long"));
  fs::create_symlink(in("b"), in("a"));
  fs::create_symlink(in("a"), in("b"));
  EXPECT_THAT(refusal([&] { read_input(in("a")); }), HasSubstr("Too many levels of symbolic links"));
}

// At the limit and one byte above it, also through a pipe, whose size nobody knows before.
TEST_F(Files, InputsEndAtTheirLimit) {
  const std::string path = with("f", std::string(1 << 20, 'x'));
  EXPECT_EQ(read_input(path, 1 << 20).size(), std::size_t{1} << 20);
  EXPECT_THAT(refusal([&] { read_input(path, (1 << 20) - 1); }), HasSubstr("f: is larger than"));
  EXPECT_EQ(read_input(with("empty", ""), 0), "");
  ASSERT_EQ(mkfifo(in("pipe").c_str(), 0600), 0);
  if (fork() == 0) {
    std::ofstream(in("pipe")) << std::string(100'000, 'y');
    _exit(0);
  }
  EXPECT_EQ(read_input(in("pipe"), 100'000), std::string(100'000, 'y'));
}

TEST_F(Files, AnOutputIsNoOtherOutput) {
  const RunFiles files;
  const OutputFile first(in("x"));
  EXPECT_THAT(refusal([&] { OutputFile(in("x")); }), HasSubstr("two outputs of this run have this name"));
  EXPECT_THAT(refusal([&] { OutputFile(in("./x")); }), HasSubstr("two outputs"));
  fs::create_symlink(in("x"), in("link"));
  EXPECT_THAT(refusal([&] { OutputFile(in("link")); }), HasSubstr("two outputs"));
  EXPECT_THAT(refusal([&] { NamedOutput(in("x")); }), HasSubstr("two outputs"));
  EXPECT_EQ(refusal([&] { OutputFile(in("y")); }), "(accepted)");
  EXPECT_EQ(refusal([] { OutputFile("/dev/null"), OutputFile("/dev/null"); }), "(accepted)");
}

TEST_F(Files, AnOutputIsNoOtherOutputByAHardLink) {
  const RunFiles files;
  fs::create_hard_link(with("x", "old"), in("other"));
  const OutputFile first(in("x"));
  EXPECT_THAT(refusal([&] { OutputFile(in("other")); }), HasSubstr("two outputs"));
}

TEST_F(Files, AnOutputIsNoInputInEitherOrder) {
  const RunFiles files;
  fs::create_symlink(with("source", "mine"), in("link"));
  read_input(in("link"));
  EXPECT_THAT(refusal([&] { OutputFile(in("source")); }), HasSubstr("is read by this run"));
  const std::string written = with("result", "old");
  const OutputFile output(written);
  EXPECT_THAT(refusal([&] { read_input(written); }), HasSubstr("is an output of this run"));
  EXPECT_EQ(refusal([&] { OutputFile(in("source"), OutputFile::Compression::none, Use::renewed); }),
            "(accepted)");
}

// Who says that an input is renewed may write it once, by whatever opens the file.
TEST_F(Files, WhatIsSaidToBeRenewedIsWrittenOnce) {
  const RunFiles files;
  read_input(with("trace", "old"));
  RunFiles::current()->add_output(in("trace"), in("trace"), Use::renewed);
  EXPECT_EQ(refusal([&] { OutputFile(in("trace")); }), "(accepted)");
  EXPECT_EQ(refusal([&] { read_input(in("trace")); }), "(accepted)");
  EXPECT_THAT(refusal([&] { OutputFile(in("trace")); }), HasSubstr("trace: "));
}

// What is tried before the work is opened once in it; and never by two.
TEST_F(Files, WhatIsTriedIsWrittenOnce) {
  RunFiles files;
  OutputFile::try_open(in("x"));
  EXPECT_THAT(refusal([&] { OutputFile::try_open(in("x")); }), HasSubstr("two outputs"));
  EXPECT_THAT(refusal([&] { OutputFile(in("x")); }), HasSubstr("two outputs")) << "the work has not begun";
  files.begin_work();
  EXPECT_EQ(refusal([&] { OutputFile(in("x")); }), "(accepted)");
  EXPECT_THAT(refusal([&] { OutputFile(in("x")); }), HasSubstr("two outputs"));
}

TEST_F(Files, ArePerRun) {
  {
    const RunFiles files;
    write_file(in("x"), "one");
    const RunFiles inner;
    EXPECT_EQ(refusal([&] { write_file(in("x"), "two"); }), "(accepted)");
  }
  EXPECT_EQ(refusal([&] { write_file(in("x"), "a"), write_file(in("x"), "b"); }), "(accepted)");
  EXPECT_EQ(RunFiles::current(), nullptr);
}

// The number of a file that was replaced may be given to the next one.
TEST_F(Files, AnInodeIsForgottenWithItsFile) {
  const RunFiles files;
  with("x", "old");
  const fs::path kept = in("kept");
  fs::create_hard_link(in("x"), kept);  // keeps the old inode under another name
  write_file(in("x"), "new");
  EXPECT_EQ(refusal([&] { OutputFile(kept.string()); }), "(accepted)");
}

TEST(SealedJson, EveryChangeIsSeen) {
  Json document{{"schema", 2}, {"value", 1.25}, {"list", {1, 2}}};
  EXPECT_FALSE(has_good_checksum(document, "d"));
  document[kChecksum] = checksum_of(document);
  EXPECT_TRUE(has_good_checksum(document, "d"));
  EXPECT_TRUE(has_good_checksum(Json::parse(document.dump(3)), "d")) << "spaces do not count";
  document["value"] = 1.2500000000000002;
  EXPECT_THAT(refusal([&] { has_good_checksum(document, "d"); }),
              HasSubstr("d: its checksum does not match"));
}

}  // namespace
}  // namespace cm384::files_test
