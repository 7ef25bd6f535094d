#include "admin/exposition.h"

#include <array>
#include <charconv>

namespace leaf {
namespace {

void AppendLabelValue(std::string_view value, std::string& out) {
  for (const char c : value) {
    switch (c) {
      case '\\':
        out += "\\\\";
        break;
      case '"':
        out += "\\\"";
        break;
      case '\n':
        out += "\\n";
        break;
      default:
        out += c;
    }
  }
}

}  // namespace

void Exposition::Family(std::string_view name, std::string_view type, std::string_view help) {
  family_ = name;
  text_ += "# HELP ";
  text_ += name;
  text_ += ' ';
  text_ += help;
  text_ += "\n# TYPE ";
  text_ += name;
  text_ += ' ';
  text_ += type;
  text_ += '\n';
}

void Exposition::Name(Labels labels, std::string_view suffix) {
  text_ += family_;
  text_ += suffix;
  char separator = '{';
  for (const auto& [name, value] : labels) {
    text_ += separator;
    text_ += name;
    text_ += "=\"";
    AppendLabelValue(value, text_);
    text_ += '"';
    separator = ',';
  }
  text_ += labels.size() == 0 ? " " : "} ";
}

void Exposition::Sample(Labels labels, std::uint64_t value, std::string_view suffix) {
  Name(labels, suffix);
  text_ += std::to_string(value) + "\n";
}

void Exposition::Sample(Labels labels, std::int64_t value, std::string_view suffix) {
  Name(labels, suffix);
  text_ += std::to_string(value) + "\n";
}

void Exposition::Sample(Labels labels, double value, std::string_view suffix) {
  Name(labels, suffix);
  text_ += Number(value) + "\n";
}

std::string Exposition::Number(double value) {
  std::array<char, 40> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

}  // namespace leaf
