// A loaded program, shared by all cores that run it: the pages of its image and its decoded blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/engine/worker.h"
#include "hw/parameters/scalar_core.h"
#include "npu_core/scalar/elf_image.h"
#include "npu_core/scalar/kernel_log.h"

namespace cm384::npu {

class DecodeCache;

inline constexpr std::uint64_t kPageBytes = 4096;
using PageBytes = std::array<std::byte, kPageBytes>;

// What holds for a kernel beyond its instructions. On in images of `cm384 kernel build`, which stands for the
// compiler of Ascend C (a symbol of theirs, cm384_front_end, says so); off in the built-in kernels, which
// order what they do and clean what they store by themselves.
struct KernelRules {
  // Scalar accesses to the UBuffer wait for the pipes that touch their bytes (npu_core/pipes/local_order.h).
  bool order = false;
  // Lines of global memory that a block ends with dirty are written back. Whether the part does is not known.
  bool write_back = false;
  // Hazards, where they are looked for, are noted in the log and end nothing. Off everywhere unless asked
  // for.
  bool list_hazards = false;
};

class Program {
 public:
  // The decoded blocks hold the static part of the timing, so a program is made for one set of parameters
  // (kept by reference: they must outlive it). Cores of different workers share no decoded blocks.
  Program(std::shared_ptr<const ElfImage> image, const hw::ScalarCoreParameters& parameters,
          unsigned workers = 1);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const ElfImage& image() const { return *image_; }
  const std::shared_ptr<const ElfImage>& shared_image() const { return image_; }
  // The page of the image that holds private-memory page `index`; the shared page of zeros outside the image.
  const PageBytes& page(std::size_t index) const { return *pages_[index]; }
  // True where the page holds executable bytes of the image.
  bool is_text(std::size_t index) const { return text_[index]; }
  DecodeCache& blocks() { return *blocks_[sim::worker()]; }
  const hw::ScalarCoreParameters& parameters() const { return parameters_; }
  // Whether plain loads and stores below 192 KiB reach the UBuffer too: in images with a function marked
  // __global__, as Ascend C kernels take UBuffer offsets for pointers.
  bool ubuffer_at_zero() const { return ubuffer_at_zero_; }
  // Linked as kernels are (firmware/runtime/kernel.ld): sp is the pointer of a stack that grows down from the
  // end of private memory, and no register for anything else.
  bool has_stack() const { return has_stack_; }
  const KernelRules& rules() const { return rules_; }
  // Before its first launch.
  void set_rules(const KernelRules& rules) { rules_ = rules; }
  // What these rules have caused in its blocks.
  KernelLog& log() { return log_; }
  // Executable addresses of the image, [low, high).
  std::uint64_t text_low() const { return text_low_; }
  std::uint64_t text_high() const { return text_high_; }

 private:
  std::shared_ptr<const ElfImage> image_;
  const hw::ScalarCoreParameters& parameters_;
  std::vector<std::unique_ptr<PageBytes>> owned_;
  std::vector<const PageBytes*> pages_;
  std::vector<bool> text_;
  KernelRules rules_;
  KernelLog log_;
  bool ubuffer_at_zero_ = false, has_stack_ = false;
  std::uint64_t text_low_ = 0, text_high_ = 0;
  std::vector<std::unique_ptr<DecodeCache>> blocks_;  // by worker
};

}  // namespace cm384::npu
