// An operator on a die: it gives itself memory, is put into a stream, and says whether what came out is
// right.
//
//     Gemm gemm(setting);
//     gemm.place({memory, load, groups_of(0, 12), true});   // on 12 of the die's groups; `memory` frees it
//     later gemm.enqueue(stream);                                 // beside what other streams of the die
//     have runtime.wait(); const std::string difference = gemm.check();          // empty: right
//
// What a run of it is made of is its grade. At grade firmware cores execute its kernel. At grade replay they
// move what the firmware moved once, each transfer when what it waited for has happened, and execute nothing.
// At grade formula they are taken for a duration in closed form and move nothing. Values come of grade
// firmware alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "npu_core/replay/recording.h"
#include "system/host/device_memory.h"
#include "system/host/runtime.h"
#include "workloads/operators/reference/accuracy.h"

namespace cm384::operators {

enum class Grade : std::uint8_t { firmware, replay, formula };
std::string_view name_of(Grade grade);
// The grade named "firmware", "replay" or "formula".
Grade grade_of(std::string_view name);

// Where an operator stands.
struct Site {
  host::DeviceMemory& memory;  // of its die; outlives it
  // A kernel of firmware/kernels, as a program of this machine.
  std::function<std::shared_ptr<npu::Program>(std::string_view kernel)> load;
  std::vector<std::uint16_t> cores;  // of block 0, 1, ...: as npu::LaunchRequest
  bool full = false;                 // payload mode: values, not tags
};

// `count` cores, or groups, from `first` on.
std::vector<std::uint16_t> cores_from(int first, int count);
// For Site::load: built into the program, for this runtime.
std::shared_ptr<npu::Program> load_built_in(host::Runtime& runtime, std::string_view kernel);

class Operator {
 public:
  virtual ~Operator() = default;

  // Allocates its memory and, in payload mode full, writes its inputs. Once. Throws InputError where there is
  // no room or its shape does not fit.
  virtual void place(const Site& site) = 0;
  // Puts one run of it into a stream of its die. After place().
  virtual void enqueue(host::Stream stream) = 0;
  // Compares what the last run left with a reference computed on the host, in payload mode full: the first
  // difference; empty: none.
  virtual std::string check() const = 0;
};

// A description of an operator's size, for closed forms.
struct Work {
  double operations = 0;  // two a multiplication with its addition
  bool int8 = false;      // of INT8, otherwise of BF16
  double bytes = 0;       // from and to HBM, each once
  int stages = 1;         // one after another, each from and to memory
  double weights = 0;     // of the bytes: of weights
  double cache = 0;       // of the bytes: read of cached keys and values, or of latents
};

// An operator that is one launch of a kernel.
class KernelOperator : public Operator {
 public:
  void place(const Site& site) final;
  void enqueue(host::Stream stream) override;

  // Before the first enqueue(): how it runs. `recording` is for grade replay alone.
  // `pacing`: of that grade, what it shares with other dies.
  void run_at(Grade grade, std::shared_ptr<const npu::Recording> recording = nullptr,
              npu::Pacing pacing = {});
  // As part of a captured graph: set up while the task before it in its stream runs. Before enqueue().
  void launch_in_graph(bool graph) { graph_ = graph; }
  // The record of the last enqueue(), once it has run.
  const npu::LaunchRecord& record() const { return site().memory.runtime().record(launch_); }

  virtual const char* kernel() const = 0;
  virtual npu::KernelType type() const { return npu::KernelType::mix; }
  virtual Work work() const = 0;
  // All that what it moves depends on, besides where it is placed: "gemm 7168 x 4096 x 4096 int8 nz".
  virtual std::string size() const = 0;
  // How exact its last run was, stage by stage, where its inputs were drawn for that; in payload mode full.
  virtual std::vector<reference::StageAccuracy> accuracy() const { return {}; }
  // What enqueue() launches, at grade firmware.
  npu::LaunchRequest request();

 protected:
  // Allocates and fills in the memory, all but the block of arguments; puts that.
  virtual void lay_out(const Site& site) = 0;
  virtual std::uint64_t write_arguments(host::DeviceMemory& memory) const = 0;
  // Those of the site's cores that it uses; called after lay_out().
  virtual std::vector<std::uint16_t> cores() const { return site().cores; }

  const Site& site() const { return *site_; }
  host::Runtime& runtime() const { return site_->memory.runtime(); }

 private:
  std::unique_ptr<Site> site_;
  std::uint64_t arguments_ = 0;
  Grade grade_ = Grade::firmware;
  bool graph_ = false;
  std::shared_ptr<const npu::Recording> recording_;
  npu::Pacing pacing_;
  std::shared_ptr<const npu::PlayedLaunch> played_;
  host::LaunchHandle launch_;
};

// An operator whose kernel takes one struct of arguments, which lay_out() fills in.
template <class Arguments, class Base = KernelOperator>
class KernelWith : public Base {
 public:
  using Base::Base;

 protected:
  Arguments arguments_{};

 private:
  std::uint64_t write_arguments(host::DeviceMemory& memory) const final { return memory.put(arguments_); }
};

// Grade formula: from the first instruction to the last. What takes longest of multiplying at the die's peak,
// as far as it has these cores, and of moving at HBM's, and a round trip to HBM for each stage.
Time duration_of(const Work& work, std::size_t blocks, const hw::Machine& machine);

}  // namespace cm384::operators
