#include "core/segment/tag_table.h"

#include <cstring>
#include <functional>
#include <new>

namespace leaf {

namespace {
std::uint32_t Hash(std::string_view name) noexcept {
  return static_cast<std::uint32_t>(std::hash<std::string_view>{}(name));
}
}  // namespace

TagTable::~TagTable() {
  directory_.ForEach([](Tag& tag) {
    tag.~Tag();
    ::operator delete(&tag);
  });
}

Tag* TagTable::Find(std::string_view name) const noexcept {
  return directory_.Find(name, Hash(name));
}

Tag& TagTable::FindOrAdd(std::string_view name) {
  const std::uint32_t hash = Hash(name);
  if (Tag* known = directory_.Find(name, hash)) return *known;
  MutexLock lock(write_mu_);
  if (Tag* known = directory_.Find(name, hash)) return *known;
  void* memory = ::operator new(sizeof(Tag) + name.size());
  Tag* tag = new (memory) Tag(hash, static_cast<std::uint32_t>(name.size()));
  std::memcpy(static_cast<void*>(tag + 1), name.data(), name.size());
  directory_.Insert(*tag);
  return *tag;
}

TagUse& TagTable::BeginUse(Tag& tag) {
  tag.use = std::make_unique<TagUse>();
  MutexLock lock(in_use_mu_);
  in_use_.push_back(&tag);
  return *tag.use;
}

std::vector<Tag*> TagTable::InUse() const {
  MutexLock lock(in_use_mu_);
  return in_use_;
}

}  // namespace leaf
