// What every RTL bench stands on: clock, reset, waves and coverage on request.
//
//     CM384_WAVES=DIR     writes DIR/<test>.fst, where the model was built with TRACE
//     CM384_COVERAGE=DIR  writes DIR/<test>.dat, where it was built with COVERAGE
//
// Of a test that makes several models one after the other, the files are those of the last.
//
// A failed assertion of the RTL fails the test that runs.
#pragma once

#include <gtest/gtest.h>
#include <verilated.h>
#include <verilated_cov.h>
#include <verilated_fst_c.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

namespace cm384::rtl {

// A file of the running test in the folder that the environment variable names; empty when it is not set.
inline std::string file_of_test(const char* variable, const std::string& ending) {
  const char* folder = std::getenv(variable);
  if (folder == nullptr) return {};
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test->test_suite_name()) + "." + test->name();
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return std::string(folder) + "/" + name + ending;
}

template <class Model>
class Harness {
 public:
  // `part` tells the files of models apart that run side by side in one test.
  explicit Harness(std::string part = {})
      : model(std::make_unique<Model>(&context_)), part_(std::move(part)) {
    context_.fatalOnError(false);
    if constexpr (requires(Model & m, VerilatedFstC * f) { m.trace(f, 99); }) {
      if (const std::string file = file_of_test("CM384_WAVES", part_ + ".fst"); !file.empty()) {
        context_.traceEverOn(true);
        waves_ = std::make_unique<VerilatedFstC>();
        model->trace(waves_.get(), 99);
        waves_->open(file.c_str());
      }
    }
  }
  ~Harness() {
    // Verilator's models take themselves off the context that the thread used last, which may be another's.
    Verilated::threadContextp(&context_);
    model->final();
    if (waves_) waves_->close();
    EXPECT_EQ(context_.errorCount(), 0) << "assertions of the RTL failed";
    const std::string file = file_of_test("CM384_COVERAGE", part_ + ".dat");
    if (!file.empty()) context_.coveragep()->write(file.c_str());
  }
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

  // One cycle: what was put on the inputs is taken at the clock's edge, then outputs are new.
  void tick() {
    settle();
    edge();
  }
  // The same in two steps: what follows from the inputs without the edge can be seen between them.
  void settle() {
    model->clk_i = 0;
    step();
  }
  void edge() {
    model->clk_i = 1;
    step();
    ++cycle;
  }
  void reset(unsigned cycles = 2) {
    model->rst_ni = 0;
    for (unsigned c = 0; c < cycles; ++c) tick();
    model->rst_ni = 1;
  }

 private:
  void step() {
    model->eval();
    if (waves_) waves_->dump(static_cast<vluint64_t>(context_.time()));
    context_.timeInc(1);
  }

  VerilatedContext context_;
  std::unique_ptr<VerilatedFstC> waves_;

 public:
  std::unique_ptr<Model> model;
  std::uint64_t cycle = 0;

 private:
  std::string part_;
};

}  // namespace cm384::rtl
