#include "apps/llama/checkpoint/tokenizer/bpe.hpp"

#include <queue>
#include <tuple>

namespace llama {
namespace {

std::uint64_t key_of(int left, int right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

constexpr int kNone = -1;

}  // namespace

// A merge that was possible when it was noted; the word may have changed since.
struct BytePairEncoder::Candidate {
  int rank;
  int position;                                   // of the left token
  bool operator<(const Candidate& other) const {  // the least is on top of the queue
    return std::tie(rank, position) > std::tie(other.rank, other.position);
  }
};

// The tokens of a word as a linked list in an array: a merge keeps the left one and unlinks the right one.
class BytePairEncoder::Word {
 public:
  Word(const BytePairEncoder& encoder, std::string_view bytes) : encoder_(encoder) {
    tokens_.reserve(bytes.size());
    const int count = static_cast<int>(bytes.size());
    for (int i = 0; i < count; ++i) {
      const auto byte = static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
      tokens_.push_back({encoder.byte_ids_[byte], i - 1, i + 1 < count ? i + 1 : kNone});
    }
    for (int i = 0; i + 1 < count; ++i) note(i);
  }

  void merge_all() {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      merge(best);
    }
  }

  void append_to(std::vector<int>& ids) const {
    for (int i = tokens_.empty() ? kNone : 0; i != kNone; i = token(i).next) ids.push_back(token(i).id);
  }

 private:
  struct Token {
    int id;  // kNone once it was merged into its left neighbour
    int previous;
    int next;
  };

  Token& token(int i) { return tokens_[static_cast<std::size_t>(i)]; }
  const Token& token(int i) const { return tokens_[static_cast<std::size_t>(i)]; }

  const Ranked* merge_at(int i) const {
    if (i == kNone || token(i).id == kNone || token(i).next == kNone) return nullptr;
    return encoder_.find(token(i).id, token(token(i).next).id);
  }

  void note(int i) {
    if (const Ranked* merge = merge_at(i)) queue_.push({merge->rank, i});
  }

  void merge(const Candidate& candidate) {
    const Ranked* possible = merge_at(candidate.position);
    if (possible == nullptr || possible->rank != candidate.rank) return;  // out of date
    Token& left = token(candidate.position);
    Token& right = token(left.next);
    left.id = possible->result;
    left.next = right.next;
    right.id = kNone;
    if (left.next != kNone) token(left.next).previous = candidate.position;
    note(left.previous);
    note(candidate.position);
  }

  const BytePairEncoder& encoder_;
  std::vector<Token> tokens_;
  std::priority_queue<Candidate> queue_;
};

BytePairEncoder::BytePairEncoder(const std::array<int, 256>& byte_ids, const std::vector<Merge>& merges) : byte_ids_(byte_ids) {
  merges_.reserve(merges.size());
  for (const Merge& merge : merges) {
    merges_.try_emplace(key_of(merge.left, merge.right), Ranked{static_cast<int>(merges_.size()), merge.result});
  }
}

const BytePairEncoder::Ranked* BytePairEncoder::find(int left, int right) const {
  const auto found = merges_.find(key_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void BytePairEncoder::encode(std::string_view bytes, std::vector<int>& ids) const {
  Word word(*this, bytes);
  word.merge_all();
  word.append_to(ids);
}

}  // namespace llama
