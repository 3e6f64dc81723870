#include "npu_core/scalar/elf_image.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text/error.h"
#include "base/text/input_file.h"
#include "firmware/abi/memory_map.h"
#include "npu_core/scalar/debug_info.h"

namespace cm384::npu {
namespace {

constexpr int kMachineRiscv = 243;
// Of a symbol's name; longer ones are cut. Names may share bytes, so that a small file could fill any memory.
constexpr std::size_t kLongestName = 512;

// The open file and libelf's view of it.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) {
    open_input(path);  // refuses what is no file
    file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_ < 0) throw InputError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    elf_version(EV_CURRENT);
    elf_ = elf_begin(file_, ELF_C_READ, nullptr);
  }
  explicit ElfFile(std::span<const std::byte> bytes) {
    elf_version(EV_CURRENT);
    // libelf only reads through the pointer.
    elf_ = elf_memory(const_cast<char*>(reinterpret_cast<const char*>(bytes.data())), bytes.size());
  }
  ~ElfFile() {
    if (elf_ != nullptr) elf_end(elf_);
    if (file_ >= 0) close(file_);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
  Elf* get() const { return elf_; }

 private:
  int file_ = -1;
  Elf* elf_ = nullptr;
};

GElf_Ehdr check_header(Elf* elf, const std::string& path) {
  GElf_Ehdr header;
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF || gelf_getehdr(elf, &header) == nullptr) {
    throw InputError(fmt::format("{}: no ELF file, or cut off in its header", path));
  }
  if (header.e_machine != kMachineRiscv || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB) {
    throw InputError(fmt::format("{}: machine {}, {}-bit; a 64-bit little-endian RISC-V ELF is needed", path,
                                 header.e_machine, header.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32));
  }
  if (header.e_type != ET_EXEC) {
    throw InputError(fmt::format("{}: ELF type {}; a static executable (type 2) is needed: link without -pie",
                                 path, header.e_type));
  }
  return header;
}

}  // namespace

ElfImage::ElfImage() = default;
ElfImage::~ElfImage() = default;

std::shared_ptr<const ElfImage> ElfImage::read(const std::string& path) {
  const ElfFile file(path);
  return parse(file.get(), path);
}

std::shared_ptr<const ElfImage> ElfImage::from_memory(std::span<const std::byte> bytes,
                                                      const std::string& name) {
  const ElfFile file(bytes);
  return parse(file.get(), name);
}

std::shared_ptr<const ElfImage> ElfImage::parse(Elf* elf, const std::string& path) {
  const GElf_Ehdr header = check_header(elf, path);
  auto image = std::make_shared<ElfImage>();
  image->path_ = path;
  image->entry_ = header.e_entry;

  std::size_t file_bytes = 0;
  const char* raw = elf_rawfile(elf, &file_bytes);
  std::size_t headers = 0;
  if (elf_getphdrnum(elf, &headers) != 0 || header.e_phoff > file_bytes ||
      headers * header.e_phentsize > file_bytes - header.e_phoff) {
    throw InputError(
        fmt::format("{}: truncated: the program headers end past its {} bytes", path, file_bytes));
  }
  for (std::size_t i = 0; i < headers; ++i) {
    GElf_Phdr h;
    if (gelf_getphdr(elf, static_cast<int>(i), &h) == nullptr) {
      throw InputError(fmt::format("{}: program header {} cannot be read", path, i));
    }
    if (h.p_type == PT_INTERP || h.p_type == PT_DYNAMIC) {
      throw InputError(fmt::format("{}: dynamically linked; a static executable is needed", path));
    }
    if (h.p_type != PT_LOAD || h.p_memsz == 0) continue;
    if (h.p_offset > file_bytes || h.p_filesz > file_bytes - h.p_offset) {
      throw InputError(fmt::format("{}: truncated: segment {} needs {} bytes, the file has {}", path, i,
                                   h.p_offset + h.p_filesz, file_bytes));
    }
    const std::uint64_t offset = h.p_vaddr - CM384_PRIVATE_BASE;
    if (h.p_filesz > h.p_memsz || offset >= CM384_PRIVATE_BYTES || h.p_memsz > CM384_PRIVATE_BYTES - offset) {
      throw InputError(fmt::format(
          "{}: segment {} [{:#x}, {:#x}) lies outside the private memory [{:#x}, {:#x})", path, i, h.p_vaddr,
          h.p_vaddr + h.p_memsz, CM384_PRIVATE_BASE, CM384_PRIVATE_BASE + CM384_PRIVATE_BYTES));
    }
    // Also keeps what is read below the size of the private memory.
    for (const Segment& other : image->segments_) {
      if (h.p_vaddr < other.address + other.bytes && other.address < h.p_vaddr + h.p_memsz)
        throw InputError(fmt::format("{}: segment {} [{:#x}, {:#x}) overlaps another one", path, i, h.p_vaddr,
                                     h.p_vaddr + h.p_memsz));
    }
    Segment segment;
    segment.address = h.p_vaddr;
    segment.bytes = h.p_memsz;
    segment.executable = (h.p_flags & PF_X) != 0;
    segment.content.resize(h.p_filesz);
    if (h.p_filesz != 0) std::memcpy(segment.content.data(), raw + h.p_offset, h.p_filesz);
    image->segments_.push_back(std::move(segment));
  }
  if (image->segments_.empty()) throw InputError(fmt::format("{}: no segment to load", path));
  image->read_symbols(elf);
  const auto* first = reinterpret_cast<const std::byte*>(raw);
  image->file_.assign(first, first + file_bytes);
  return image;
}

void ElfImage::read_symbols(void* elf) {
  const auto in_text = [&](std::uint64_t address) {
    return std::any_of(segments_.begin(), segments_.end(),
                       [&](const Segment& s) { return s.executable && address - s.address < s.bytes; });
  };
  Elf* file = static_cast<Elf*>(elf);
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(file, section)) != nullptr) {
    GElf_Shdr h;
    if (gelf_getshdr(section, &h) == nullptr || h.sh_type != SHT_SYMTAB || h.sh_entsize == 0) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr)
      throw InputError(fmt::format("{}: truncated: its symbol table cannot be read", path_));
    const auto count = static_cast<int>(h.sh_size / h.sh_entsize);
    for (int i = 0; i < count; ++i) {
      GElf_Sym s;
      if (gelf_getsym(data, i, &s) == nullptr || s.st_shndx == SHN_UNDEF) continue;
      const unsigned type = GELF_ST_TYPE(s.st_info);
      const char* name = elf_strptr(file, h.sh_link, s.st_name);
      // '$' begins the mapping symbols of the assembler, ".L" its local labels.
      if (type > STT_FUNC || name == nullptr || name[0] == '\0' || name[0] == '$' || name[0] == '.') continue;
      symbols_.push_back({s.st_value, s.st_size, std::string(name, strnlen(name, kLongestName)),
                          type == STT_FUNC || (type == STT_NOTYPE && in_text(s.st_value))});
    }
    break;  // an ELF file has one symbol table
  }
  std::sort(symbols_.begin(), symbols_.end(), [](const Symbol& a, const Symbol& b) {
    return a.address != b.address ? a.address < b.address : a.name < b.name;
  });
}

std::optional<std::uint64_t> ElfImage::symbol(std::string_view name) const {
  for (const Symbol& s : symbols_) {
    if (s.name == name) return s.address;
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, std::uint64_t>> ElfImage::symbols(std::string_view prefix) const {
  std::vector<std::pair<std::string, std::uint64_t>> found;
  for (const Symbol& s : symbols_) {
    if (s.name.starts_with(prefix)) found.emplace_back(s.name.substr(prefix.size()), s.address);
  }
  return found;
}

std::uint64_t ElfImage::code_bytes() const {
  std::uint64_t sum = 0;
  for (const Segment& segment : segments_) sum += segment.executable ? segment.bytes : 0;
  return sum;
}

std::string ElfImage::symbol_at(std::uint64_t address) const {
  const bool in_text = std::any_of(segments_.begin(), segments_.end(), [&](const Segment& s) {
    return s.executable && address - s.address < s.bytes;
  });
  if (!in_text) return "?";
  auto it = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                             [](std::uint64_t a, const Symbol& s) { return a < s.address; });
  while (it != symbols_.begin()) {
    --it;
    if (!it->code) continue;
    if (it->bytes != 0 && address - it->address >= it->bytes) continue;
    const std::uint64_t offset = address - it->address;
    return offset == 0 ? it->name : fmt::format("{}+{:#x}", it->name, offset);
  }
  return "?";
}

std::vector<std::string> ElfImage::functions(std::uint64_t begin, std::uint64_t end) const {
  std::vector<std::string> names;
  for (const Symbol& s : symbols_) {
    // With a point in its name: a part or a copy that the compiler has made.
    if (s.code && s.bytes != 0 && s.address >= begin && s.address < end &&
        s.name.find('.') == std::string::npos)
      names.push_back(s.name);
  }
  return names;
}

std::optional<std::vector<std::string>> ElfImage::kernel_parameters() const {
  const std::lock_guard lock(asking_);
  if (debug_info_ == nullptr) debug_info_ = std::make_unique<DebugInfo>(file_);
  const auto chosen = symbol("cm384_entry");
  return debug_info_->parameters_at(chosen ? *chosen : symbol("cm384_entry_begin").value_or(0));
}

std::optional<SourcePlace> ElfImage::place_of(std::uint64_t address) const {
  const std::lock_guard lock(asking_);
  if (debug_info_ == nullptr) debug_info_ = std::make_unique<DebugInfo>(file_);
  return debug_info_->place_of(address);
}

std::string ElfImage::describe(std::uint64_t address) const {
  const auto place = place_of(address);
  const std::string symbol = place && !place->function.empty() ? place->function : symbol_at(address);
  std::string text = symbol == "?" ? "" : symbol;
  if (place) text += fmt::format("{}at {}:{}", text.empty() ? "" : " ", place->file, place->line);
  return fmt::format("{}{}pc {:#x}", text, text.empty() ? "" : ", ", address);
}

}  // namespace cm384::npu
