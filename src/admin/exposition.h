#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace leaf {

/// Writes the Prometheus text format 0.0.4. Confined to its thread.
class Exposition {
 public:
  using Label = std::pair<std::string_view, std::string_view>;
  using Labels = std::initializer_list<Label>;

  /// Begins a family; its samples follow. `type` is counter, gauge or histogram.
  void Family(std::string_view name, std::string_view type, std::string_view help);
  /// A sample of the family, or of its name with `suffix` ("_bucket").
  void Sample(Labels labels, std::uint64_t value, std::string_view suffix = {});
  void Sample(Labels labels, std::int64_t value, std::string_view suffix = {});
  void Sample(Labels labels, double value, std::string_view suffix = {});

  std::string Take() && { return std::move(text_); }

  /// The shortest decimal that reads back as `value`.
  static std::string Number(double value);

 private:
  void Name(Labels labels, std::string_view suffix);

  std::string text_;
  std::string family_;
};

}  // namespace leaf
