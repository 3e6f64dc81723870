// Kernel printf: formats in the core's private memory and hands the text to the host. Takes no simulated time
// in the host; the formatting itself is ordinary instructions.
#pragma once

#include "cm384/system.h"

namespace AscendC {

// One argument of printf.
struct PrintArgument {
  enum class Kind { kSigned, kUnsigned, kFloat, kText } kind;
  union {
    int64_t signed_value;
    uint64_t unsigned_value;
    float float_value;
    const char* text;
  };
  PrintArgument(int v) : kind(Kind::kSigned), signed_value(v) {}
  PrintArgument(long v) : kind(Kind::kSigned), signed_value(v) {}
  PrintArgument(long long v) : kind(Kind::kSigned), signed_value(v) {}
  PrintArgument(unsigned v) : kind(Kind::kUnsigned), unsigned_value(v) {}
  PrintArgument(unsigned long v) : kind(Kind::kUnsigned), unsigned_value(v) {}
  PrintArgument(unsigned long long v) : kind(Kind::kUnsigned), unsigned_value(v) {}
  PrintArgument(float v) : kind(Kind::kFloat), float_value(v) {}
  PrintArgument(const char* v) : kind(Kind::kText), text(v) {}
  PrintArgument(const void* v) : kind(Kind::kUnsigned), unsigned_value(reinterpret_cast<uint64_t>(v)) {}
};

// Text of at most `capacity` bytes; what does not fit is cut.
class PrintBuffer {
 public:
  void put(char c) {
    if (used_ < sizeof text_) text_[used_++] = c;
  }
  void put_text(const char* text) {
    while (*text != 0) put(*text++);
  }
  void put_number(uint64_t value, unsigned base, int width, char fill, bool negative) {
    char digits[24];
    int n = 0;
    do {
      const unsigned digit = static_cast<unsigned>(value % base);
      digits[n++] = static_cast<char>(digit < 10 ? '0' + digit : 'a' + digit - 10);
      value /= base;
    } while (value != 0);
    const int length = n + (negative ? 1 : 0);
    if (negative && fill == '0') put('-');
    for (int i = length; i < width; ++i) put(fill);
    if (negative && fill != '0') put('-');
    while (n > 0) put(digits[--n]);
  }
  // Fixed notation with `decimals` digits, cut, not rounded; magnitudes above 2^63 print as "huge".
  void put_float(float value, int decimals) {
    if (value != value) return put_text("nan");
    const bool negative = value < 0;
    if (negative) value = -value;
    if (value >= 9.2e18f) return put_text(negative ? "-huge" : "huge");
    const uint64_t whole = static_cast<uint64_t>(value);
    put_number(whole, 10, 0, ' ', negative);
    if (decimals == 0) return;
    put('.');
    float rest = value - static_cast<float>(whole);
    for (int i = 0; i < decimals; ++i) {
      rest *= 10.0f;
      const unsigned digit = static_cast<unsigned>(rest);
      put(static_cast<char>('0' + digit));
      rest -= static_cast<float>(digit);
    }
  }
  void write() const { cm384::host_call<CM384_HOST_WRITE>(reinterpret_cast<uint64_t>(text_), used_); }

 private:
  char text_[256];
  uint64_t used_ = 0;
};

// %d %i %u %x %p %f %s %c %%, with width, leading 0, decimals of %f; h, l, z are accepted and ignored: an
// argument knows its own size.
inline void FormatAndWrite(const char* format, const PrintArgument* arguments, unsigned count) {
  PrintBuffer out;
  unsigned next = 0;
  for (const char* p = format; *p != 0; ++p) {
    if (*p != '%') {
      out.put(*p);
      continue;
    }
    ++p;
    const char fill = *p == '0' ? '0' : ' ';
    int width = 0, decimals = 6;
    while (*p >= '0' && *p <= '9') width = 10 * width + (*p++ - '0');
    if (*p == '.') {
      decimals = 0;
      while (*++p >= '0' && *p <= '9') decimals = 10 * decimals + (*p - '0');
    }
    while (*p == 'l' || *p == 'h' || *p == 'z') ++p;
    if (*p == '%') {
      out.put('%');
      continue;
    }
    if (*p == 0) break;
    if (next == count) {
      out.put_text("(no argument)");
      continue;
    }
    const PrintArgument& a = arguments[next++];
    if (a.kind == PrintArgument::Kind::kText) {
      out.put_text(a.text);
    } else if (a.kind == PrintArgument::Kind::kFloat) {
      out.put_float(a.float_value, decimals);
    } else if (*p == 'c') {
      out.put(static_cast<char>(a.unsigned_value));
    } else {
      const bool negative =
          a.kind == PrintArgument::Kind::kSigned && *p != 'x' && *p != 'p' && a.signed_value < 0;
      out.put_number(negative ? 0 - a.unsigned_value : a.unsigned_value, *p == 'x' || *p == 'p' ? 16 : 10,
                     width, fill, negative);
    }
  }
  out.write();
}

template <typename... Arguments>
inline void printf(const char* format, Arguments... arguments) {
  const PrintArgument list[] = {PrintArgument(arguments)..., PrintArgument(0)};
  FormatAndWrite(format, list, sizeof...(arguments));
}
template <typename... Arguments>
CM384_INLINE void PRINTF(const char* format, Arguments... arguments) {
  printf(format, arguments...);
}

}  // namespace AscendC
