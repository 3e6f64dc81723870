#include "workloads/frame/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace cm384::studies {
namespace {

struct Unit {
  std::string_view ending, text;
  Better better;
};
// The first that fits: what ends in another's letters stands before it.
constexpr std::array kUnits{Unit{"tokens_s", "tokens/s", Better::higher},
                            Unit{"tokens_s_npu", "tokens/s per NPU", Better::higher},
                            Unit{"tokens_s_tflops", "tokens/s per TFLOPS", Better::higher},
                            Unit{"_rps", "requests/s", Better::higher},
                            Unit{"_ps", "ps", Better::lower},
                            Unit{"_ns", "ns", Better::lower},
                            Unit{"_us", "us", Better::lower},
                            Unit{"_ms", "ms", Better::lower},
                            Unit{"_s", "s", Better::lower},
                            Unit{"_GBps", "GB/s", Better::higher},
                            Unit{"_TBps", "TB/s", Better::higher},
                            Unit{"_MB", "MB", Better::lower},
                            Unit{"_GB", "GB", Better::lower},
                            Unit{"_TFLOPS", "TFLOPS", Better::higher},
                            Unit{"_TOPS", "TOPS", Better::higher},
                            Unit{"_db", "dB", Better::higher},
                            Unit{"cycles", "cycles", Better::lower}};

const Unit* find_unit(std::string_view name) {
  const auto unit = std::ranges::find_if(kUnits, [name](const Unit& u) { return name.ends_with(u.ending); });
  return unit == kUnits.end() ? nullptr : &*unit;
}

const Field* find(std::span<const Field> fields, std::string_view name) {
  const auto field = std::ranges::find(fields, name, &Field::name);
  return field == fields.end() ? nullptr : &*field;
}

bool fits(const Value& value, FieldType type) {
  switch (type) {
    case FieldType::text:
      return value.text() != nullptr;
    case FieldType::integer:
    case FieldType::bytes:
      return value.integer() != nullptr;
    case FieldType::number:
    case FieldType::ratio:
      return value.real() != nullptr || value.integer() != nullptr;
    case FieldType::boolean:
      return value.boolean() != nullptr;
    case FieldType::object:
      return value.row() != nullptr;
    case FieldType::list:
      return value.rows() != nullptr;
  }
  return false;
}

void flatten(const Row& row, const std::string& prefix, Row& flat) {
  for (const auto& [key, value] : row.entries()) {
    const std::string name = prefix.empty() ? key : prefix + '.' + key;
    if (const Row* inner = value.row()) {
      flatten(*inner, name, flat);
    } else if (const Rows* list = value.rows()) {
      for (std::size_t k = 0; k < list->size(); ++k) {
        const std::string* own = (*list)[k]["name"].text();
        Row rest;
        for (const auto& [part, held] : (*list)[k].entries()) {
          if (part != "name") rest.set(part, held);
        }
        flatten(rest, name + '.' + (own != nullptr ? *own : std::to_string(k)), flat);
      }
    } else {
      flat.set(name, value);
    }
  }
}

void add_columns(std::span<const Field> fields, const std::string& prefix,
                 std::vector<std::string>& columns) {
  for (const Field& field : fields) {
    if (!field.column) continue;
    const std::string name = prefix + std::string(field.name);
    if (field.type == FieldType::object) {
      add_columns(field.parts, name + '.', columns);
    } else if (field.type != FieldType::list) {
      columns.push_back(name);
    }
  }
}

}  // namespace

std::string_view unit_of(std::string_view name) {
  const Unit* unit = find_unit(name);
  return unit == nullptr ? std::string_view() : unit->text;
}

Better better_of(std::string_view flattened) {
  for (std::size_t end = flattened.size();;) {
    const std::size_t dot = end == 0 ? std::string_view::npos : flattened.rfind('.', end - 1);
    const std::string_view part = flattened.substr(dot == std::string_view::npos ? 0 : dot + 1,
                                                   dot == std::string_view::npos ? end : end - dot - 1);
    if (const Unit* unit = find_unit(part.substr(0, part.find('[')))) return unit->better;
    if (dot == std::string_view::npos) return Better::neither;
    end = dot;
  }
}

Row flatten(const Row& row) {
  Row flat;
  flatten(row, "", flat);
  return flat;
}

void check_row(const Row& row, std::span<const Field> fields) {
  for (const auto& [name, value] : row.entries()) {
    const Field* field = find(fields, name);
    if (field == nullptr) throw std::logic_error(fmt::format("field {} of a row is not declared", name));
    if (value.empty()) continue;
    if (!fits(value, field->type))
      throw std::logic_error(fmt::format("field {} of a row has another type", name));
    if (const Row* inner = value.row()) check_row(*inner, field->parts);
    if (const Rows* list = value.rows()) {
      for (const Row& element : *list) check_row(element, field->parts);
    }
  }
}

const Field* find_field(std::span<const Field> fields, std::string_view flattened) {
  // A name may have dots of its own: a parameter of the machine, as an axis of a sweep.
  if (const Field* whole = find(fields, flattened)) return whole;
  const std::size_t dot = flattened.find('.');
  const Field* field = find(fields, flattened.substr(0, dot));
  if (field == nullptr || dot == std::string_view::npos) return field;
  std::string_view rest = flattened.substr(dot + 1);
  // The element of a list stands between.
  if (field->type == FieldType::list) {
    const std::size_t next = rest.rfind('.');
    if (next == std::string_view::npos) return nullptr;
    rest = rest.substr(next + 1);
  }
  return find_field(field->parts, rest);
}

std::vector<std::string> condition_names(std::span<const Field> fields) {
  std::vector<std::string> names;
  for (const Field& field : fields) {
    if (field.role == FieldRole::condition) names.emplace_back(field.name);
  }
  return names;
}

std::vector<std::string> default_columns(std::span<const Field> fields) {
  std::vector<std::string> columns;
  add_columns(fields, "", columns);
  return columns;
}

}  // namespace cm384::studies
