#include "simulate/locals.hpp"

#include <link.h>

#include <algorithm>
#include <cstring>

namespace flywheel::simulate {

/// The program comes first; libraries keep theirs.
int Locals::note(dl_phdr_info* info, std::size_t, void* self) {
  auto& locals = *static_cast<Locals*>(self);
  locals.base_ = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_TLS) continue;
    locals.all_ = {static_cast<unsigned char*>(info->dlpi_tls_data), header.p_memsz};
    locals.first_ = std::make_unique<unsigned char[]>(header.p_memsz);
    std::memcpy(locals.first_.get(), reinterpret_cast<void*>(info->dlpi_addr + header.p_vaddr), header.p_filesz);
  }
  return 1;
}

void Locals::find() {
  if (base_) return;
  dl_iterate_phdr(note, this);
  find_kept();
}

void Locals::find_kept() {
  std::sort(left_out_.begin(), left_out_.end(), [](const Piece& a, const Piece& b) { return a.at < b.at; });
  unsigned char* at = all_.at;
  for (const Piece& out : left_out_) {
    if (out.at > at) kept_.push_back({at, static_cast<std::size_t>(out.at - at)});
    at = out.at + out.bytes;
  }
  if (at < all_.at + all_.bytes) kept_.push_back({at, static_cast<std::size_t>(all_.at + all_.bytes - at)});
}

Image Locals::fresh() const {
  auto image = std::make_unique_for_overwrite<unsigned char[]>(size_of(kept_));
  std::size_t to = 0;
  for (const Piece& piece : kept_) {
    std::memcpy(image.get() + to, first_.get() + (piece.at - all_.at), piece.bytes);
    to += piece.bytes;
  }
  return image;
}

void Locals::save(unsigned char* image) const { simulate::save(kept_, image); }
void Locals::load(const unsigned char* image) const { simulate::load(kept_, image); }

void save(const std::vector<Piece>& pieces, unsigned char* image) {
  for (const Piece& piece : pieces) {
    std::memcpy(image, piece.at, piece.bytes);
    image += piece.bytes;
  }
}
void load(const std::vector<Piece>& pieces, const unsigned char* image) {
  for (const Piece& piece : pieces) {
    std::memcpy(piece.at, image, piece.bytes);
    image += piece.bytes;
  }
}

}  // namespace flywheel::simulate
