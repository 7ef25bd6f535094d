#pragma once

#include <cstdint>
#include <string_view>

namespace leaf::http1 {

/// What of a list of media types an Accept header likes best.
struct Preference {
  int weight = 0;       ///< q in thousandths; 0: not acceptable
  int specificity = 0;  ///< 0: by */*, 1: by type/*, 2: named
  int position = 0;     ///< of the range in the header
  bool operator>(const Preference& other) const noexcept;
};

/// How `accept` takes the media type `type`/`subtype`, by the most specific range that fits. A
/// missing header accepts everything; a range that cannot be read is passed over. Case-insensitive.
Preference AcceptOf(std::string_view accept, std::string_view type,
                    std::string_view subtype) noexcept;

/// The Content-Type of a bare id as Leaf chooses it: the type that Accept likes best, if it makes
/// sense for digits; otherwise, and without a wish, "text/plain;charset=UTF-8". Static storage.
std::string_view IdContentType(std::string_view accept) noexcept;

/// The Content-Type that a file suffix such as "json" stands for; empty if it stands for none.
std::string_view SuffixContentType(std::string_view suffix) noexcept;

/// Whether a person's browser asks: text/html is named and liked at least as well as JSON.
bool PrefersHtml(std::string_view accept) noexcept;

/// Whether a list of ids is wanted as lines of text rather than JSON: text is named and liked
/// better.
bool PrefersText(std::string_view accept) noexcept;

}  // namespace leaf::http1
