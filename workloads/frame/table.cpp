#include "workloads/frame/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/error.h"
#include "base/text/nearest_name.h"
#include "base/text/quantity.h"

namespace cm384::studies {
namespace {

// All columns of the rows, flattened, in the order of first appearance.
std::vector<std::string> all_columns(const Rows& flat) {
  std::vector<std::string> columns;
  for (const Row& row : flat) {
    for (const auto& [name, value] : row.entries()) {
      if (std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
    }
  }
  return columns;
}

Rows flattened(const Rows& rows) {
  Rows flat;
  for (const Row& row : rows) flat.push_back(flatten(row));
  return flat;
}

std::string real_text(double value) {
  const double size = std::abs(value);
  if (size >= 1000) return fmt::format("{:.0f}", value);
  if (size >= 100) return fmt::format("{:.1f}", value);
  if (size >= 10) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

// Sizes to about four digits: 7.5KiB, 1.25MiB.
std::string size_text(std::int64_t bytes) {
  constexpr const char* kSizeUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; std::abs(value) >= 1024 && unit + 1 < std::size(kSizeUnits); ++unit) value /= 1024;
  return fmt::format("{:.4g} {}", value, kSizeUnits[unit]);
}

std::string list_text(const Values& values);

std::string cell_text(const Value& value, const Field* field) {
  if (value.empty()) return "-";
  if (field != nullptr && field->type == FieldType::ratio)
    return fmt::format("{:.1f} %", value.number() * 100);
  if (field != nullptr && field->type == FieldType::bytes && value.integer() != nullptr)
    return size_text(*value.integer());
  if (const std::string* text = value.text()) return *text;
  if (const bool* held = value.boolean()) return *held ? "yes" : "no";
  if (const double* held = value.real()) return real_text(*held);
  if (const std::int64_t* held = value.integer()) return std::to_string(*held);
  return value.values() != nullptr ? list_text(*value.values()) : "-";
}

std::string list_text(const Values& values) {
  std::string text;
  for (const Value& value : values) text += (text.empty() ? "" : "..") + cell_text(value, nullptr);
  return text;
}

std::string csv_text(const Value& value) {
  std::string text;
  if (const std::string* held = value.text()) {
    text = *held;
  } else if (const bool* flag = value.boolean()) {
    text = *flag ? "true" : "false";
  } else if (const double* real = value.real()) {
    text = hw::format(*real);
    if (text.find_first_of(".en") == std::string::npos) text += ".0";
  } else if (const std::int64_t* whole = value.integer()) {
    text = std::to_string(*whole);
  } else if (value.values() != nullptr) {
    text = list_text(*value.values());
  }
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

bool is_number_column(const Rows& flat, const std::string& column) {
  return std::ranges::all_of(flat, [&](const Row& row) {
    const Value& value = row[column];
    return value.empty() || value.real() != nullptr || value.integer() != nullptr;
  });
}

}  // namespace

TablePrinter::TablePrinter(std::span<const Field> fields, std::string_view asked) : fields_(fields) {
  all_ = asked == "all";
  if (all_) return;
  const std::vector<std::string> usual = default_columns(fields);
  if (asked.empty()) {
    for (const std::string& name : usual) columns_.push_back({name, find_field(fields, name)});
    return;
  }
  while (true) {
    const std::size_t comma = asked.find(',');
    const std::string name(asked.substr(0, comma));
    const Field* field = find_field(fields, name);
    if (field == nullptr || field->type == FieldType::object || field->type == FieldType::list) {
      std::vector<std::string> names;
      for (const Field& declared : fields) {
        const std::string inner(declared.name);
        if (declared.type == FieldType::object) {
          for (const Field& part : declared.parts) names.push_back(inner + '.' + std::string(part.name));
        } else if (declared.type == FieldType::list) {
          for (const Field& part : declared.parts) {
            if (part.name != "name") names.push_back(inner + ".NAME." + std::string(part.name));
          }
        } else {
          names.push_back(inner);
        }
      }
      // A line that can be read: of very many the usual ones.
      constexpr std::size_t kMostNamed = 32;
      const bool many = names.size() > kMostNamed;
      throw InputError(fmt::format("--columns: '{}': no such column{}; allowed: all, {}{}", name,
                                   hw::suggestion(name, names), fmt::join(many ? usual : names, ", "),
                                   many ? " and others, which all shows" : ""));
    }
    columns_.push_back({name, field});
    if (comma == std::string_view::npos) return;
    asked.remove_prefix(comma + 1);
  }
}

void TablePrinter::begin(const Row& flat) {
  begun_ = true;
  if (all_) {
    for (const auto& [name, value] : flat.entries()) columns_.push_back({name, find_field(fields_, name)});
  }
  constexpr std::size_t kNumber = 8;
  for (Column& column : columns_) {
    const FieldType type = column.field == nullptr ? FieldType::text : column.field->type;
    column.right = type == FieldType::integer || type == FieldType::number || type == FieldType::ratio ||
                   type == FieldType::bytes;
    column.width = std::max({column.name.size(), cell_text(flat[column.name], column.field).size(),
                             column.field == nullptr ? 0 : column.field->width});
    if (type != FieldType::text && type != FieldType::boolean) column.width = std::max(column.width, kNumber);
  }
}

std::string TablePrinter::add(const Row& row) {
  const Row flat = flatten(row);
  std::string lines;
  const auto line = [&](auto&& text) {
    std::string made;
    for (const Column& column : columns_) {
      const std::string cell = text(column);
      const std::string padding(column.width - std::min(column.width, cell.size()), ' ');
      made += (made.empty() ? "" : "  ") + (column.right ? padding + cell : cell + padding);
    }
    made.erase(made.find_last_not_of(' ') + 1);
    lines += made + '\n';
  };
  if (!begun_) {
    begin(flat);
    line([](const Column& column) { return column.name; });
    line([](const Column& column) { return std::string(column.width, '-'); });
  }
  line([&](const Column& column) { return cell_text(flat[column.name], column.field); });
  return lines;
}

std::string to_table(const Rows& rows) {
  const Rows flat = flattened(rows);
  std::vector<std::string> lines(flat.size() + 2);
  for (const std::string& column : all_columns(flat)) {
    std::size_t width = column.size();
    for (const Row& row : flat) width = std::max(width, cell_text(row[column], nullptr).size());
    const bool right = is_number_column(flat, column);
    const auto add = [&](std::string& line, const std::string& text) {
      const std::string padding(width - text.size(), ' ');
      line += (line.empty() ? "" : "  ") + (right ? padding + text : text + padding);
    };
    add(lines[0], column);
    add(lines[1], std::string(width, '-'));
    for (std::size_t i = 0; i < flat.size(); ++i) add(lines[i + 2], cell_text(flat[i][column], nullptr));
  }
  std::string text;
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    if (!line.empty()) text += line + '\n';
  }
  return text;
}

std::string to_csv(const Rows& rows) {
  const Rows flat = flattened(rows);
  const std::vector<std::string> columns = all_columns(flat);
  std::string text = fmt::format("{}\n", fmt::join(columns, ","));
  for (const Row& row : flat) {
    std::string line;
    for (const std::string& column : columns) {
      if (&column != &columns.front()) line += ',';
      line += csv_text(row[column]);
    }
    text += line + '\n';
  }
  return text;
}

}  // namespace cm384::studies
