// Transactions that the machine sends to foreign targets: TLM's generic payload with room for one request.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <tlm>
#include <vector>

#include "base/engine/payload.h"
#include "base/engine/transaction.h"

namespace cm384::doors {

struct PooledTransaction : tlm::tlm_generic_payload {
  explicit PooledTransaction(tlm::tlm_mm_interface* pool) : tlm_generic_payload(pool) {}
  std::array<unsigned char, sim::kRequestBytes> bytes{};

  void set(bool write, std::uint64_t address, std::uint32_t length) {
    set_command(write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
    set_address(address);
    set_data_ptr(bytes.data());
    set_data_length(length);
    set_streaming_width(length);
    set_byte_enable_ptr(nullptr);
    set_dmi_allowed(false);
    set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  }
};

// acquire() returns one with one reference; it comes back with the last.
class TransactionPool final : public tlm::tlm_mm_interface {
 public:
  PooledTransaction& acquire() {
    if (free_.empty()) {
      all_.push_back(std::make_unique<PooledTransaction>(this));
      free_.push_back(all_.back().get());
    }
    PooledTransaction& t = *free_.back();
    free_.pop_back();
    t.acquire();
    return t;
  }
  void free(tlm::tlm_generic_payload* transaction) override {
    transaction->reset();
    free_.push_back(static_cast<PooledTransaction*>(transaction));
  }

 private:
  std::vector<std::unique_ptr<PooledTransaction>> all_;
  std::vector<PooledTransaction*> free_;
};

}  // namespace cm384::doors
