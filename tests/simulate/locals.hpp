// The program's thread_local objects. All fibers have theirs at one address, in turn: the scheduler copies them to and fro.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

struct dl_phdr_info;

namespace flywheel::simulate {

struct Piece {
  unsigned char* at = nullptr;
  std::size_t bytes = 0;
};
using Image = std::unique_ptr<unsigned char[]>;

class Locals {
 public:
  /// Before the first run; again, it does nothing.
  void find();
  bool holds(const void* at) const { return at >= all_.at && at < all_.at + all_.bytes; }
  /// Where the program lies.
  std::uintptr_t base() const { return base_; }

  /// Pieces that save() and load() leave out.
  void leave_out(const Piece& piece) { left_out_.push_back(piece); }
  /// As a thread finds them at its begin.
  Image fresh() const;
  void save(unsigned char* image) const;
  void load(const unsigned char* image) const;

 private:
  static int note(dl_phdr_info* info, std::size_t, void* self);
  void find_kept();

  Piece all_;
  Image first_;  // what a thread begins with
  std::vector<Piece> left_out_, kept_;
  std::uintptr_t base_ = 0;
};

inline std::size_t size_of(const std::vector<Piece>& pieces) {
  std::size_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.bytes;
  return bytes;
}
/// One behind the other.
void save(const std::vector<Piece>& pieces, unsigned char* image);
void load(const std::vector<Piece>& pieces, const unsigned char* image);

}  // namespace flywheel::simulate
