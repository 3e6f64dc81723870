#include "npu_core/scalar/program.h"

#include <algorithm>
#include <cstring>

#include "npu_core/scalar/decode.h"
#include "npu_core/scalar/private_memory.h"

namespace cm384::npu {
namespace {

const PageBytes kZeros{};

}  // namespace

Program::Program(std::shared_ptr<const ElfImage> image, const hw::ScalarCoreParameters& parameters,
                 unsigned workers)
    : image_(std::move(image)),
      parameters_(parameters),
      pages_(PrivateMemory::kPages, &kZeros),
      text_(PrivateMemory::kPages, false) {
  ubuffer_at_zero_ = image_->takes_arguments();
  const bool front_end = image_->symbol("cm384_front_end").has_value();
  rules_ = {.order = front_end, .write_back = front_end};
  has_stack_ = image_->symbol("__stack_top").has_value();
  std::vector<PageBytes*> writable(PrivateMemory::kPages, nullptr);
  for (const ElfImage::Segment& segment : image_->segments()) {
    std::size_t done = 0;
    while (done < segment.content.size()) {
      const std::uint64_t address = segment.address + done;
      const std::size_t page = PrivateMemory::page_of(address);
      if (writable[page] == nullptr) {
        owned_.push_back(std::make_unique<PageBytes>());
        writable[page] = owned_.back().get();
        pages_[page] = writable[page];
      }
      const std::size_t in_page = address % kPageBytes;
      const std::size_t bytes = std::min<std::size_t>(kPageBytes - in_page, segment.content.size() - done);
      std::memcpy(writable[page]->data() + in_page, segment.content.data() + done, bytes);
      done += bytes;
    }
    if (!segment.executable || segment.content.empty()) continue;
    const std::uint64_t end = segment.address + segment.content.size();
    for (std::size_t page = PrivateMemory::page_of(segment.address); page <= PrivateMemory::page_of(end - 1);
         ++page) {
      text_[page] = true;
    }
    text_low_ = text_high_ == 0 ? segment.address : std::min(text_low_, segment.address);
    text_high_ = std::max(text_high_, end);
  }
  for (unsigned w = 0; w < workers; ++w)
    blocks_.push_back(std::make_unique<DecodeCache>(parameters_, text_low_, text_high_));
}

Program::~Program() = default;

}  // namespace cm384::npu
