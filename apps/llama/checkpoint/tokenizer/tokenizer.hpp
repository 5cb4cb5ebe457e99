#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/llama/checkpoint/tokenizer/added_tokens.hpp"
#include "apps/llama/checkpoint/tokenizer/bpe.hpp"
#include "apps/llama/checkpoint/tokenizer/pretokenizer.hpp"
#include "apps/llama/checkpoint/tokenizer/utf8.hpp"
#include "apps/llama/checkpoint/tokenizer/vocabulary.hpp"

namespace llama {

// Everything a tokenizer.json says that matters for ids.
struct TokenizerParts {
  Vocabulary vocabulary;
  BytePairEncoder merges;
  AddedTokens added;
  std::vector<SplitRule> rules;  // applied one after the other, each to the pieces of the one before
  std::vector<int> prefix;       // ids that go in front of every text, such as Llama 3's <|begin_of_text|>
  std::vector<int> suffix;
  bool add_prefix_space = false;  // a space goes in front of a text that has none
  bool ignore_merges = false;     // a piece that is a token as a whole is that token
};

// A byte-level BPE tokenizer out of a Hugging Face tokenizer.json: that of GPT-2, Llama 3, Qwen 2 and 3, and
// of the models trained by tools/train_llama.py. Ids are the same as those of the tokenizers library. One
// exception: a file that asks for Unicode normalisation (NFC, as Qwen's does) is accepted, but texts are
// taken as they are. Nearly all text is in that form anyway; of one that is not, the ids differ and the
// decoded text is the one given. Immutable, so safe from several threads at once.
class Tokenizer {
 public:
  // `path` is a tokenizer.json or the folder it is in. Throws ModelError, naming the key and the remedy, when
  // the file is damaged or asks for something else than the above.
  static Tokenizer load(const std::filesystem::path& path);

  // The same for the text of a tokenizer.json; `file` is for messages.
  static Tokenizer parse(std::string_view json, const std::filesystem::path& file);

  // Ids of a UTF-8 text, with the prefix and suffix the file asks for. Any bytes will do: those that are no
  // UTF-8 come back unchanged from bytes_of. The text of a special token gives that token.
  std::vector<int> encode(std::string_view text) const;
  std::vector<int> encode_plain(std::string_view text) const;  // without prefix and suffix

  // A text that someone else wrote, to stand inside one for encode_guarded(): whatever it says, no special token comes of it.
  // kGuard, a byte that UTF-8 does not have, stands behind each byte of what would be one.
  static constexpr char kGuard = '\xff';
  std::string guarded(std::string_view text) const;
  std::vector<int> encode_guarded(std::string_view text) const;  // as encode_plain, without the guards

  // The text of some ids: valid UTF-8, with U+FFFD for bytes that are none. decode_visible leaves out special
  // tokens.
  std::string decode(std::span<const int> ids) const;
  std::string decode_visible(std::span<const int> ids) const;

  // The bytes of one token; empty for an id without one, as models with padded vocabularies may produce.
  const std::string& bytes_of(int id) const { return parts_.vocabulary.bytes_of(id); }
  bool is_special(int id) const { return parts_.vocabulary.is_special(id); }
  std::optional<int> id_of(std::string_view bytes) const { return parts_.vocabulary.find(bytes); }
  int size() const { return parts_.vocabulary.size(); }  // the largest id, plus one

 private:
  explicit Tokenizer(TokenizerParts parts) : parts_(std::move(parts)) {}
  void encode_section(std::string_view section, std::vector<int>& ids) const;
  void cut(std::string_view text, std::size_t rule, std::vector<int>& ids) const;
  void encode_piece(std::string_view piece, std::vector<int>& ids) const;

  TokenizerParts parts_;
};

// Turns ids into text one at a time, for showing a text while it is made. A character whose bytes are spread
// over several tokens appears with the last of them; special tokens do not appear.
class Decoder {
 public:
  explicit Decoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}  // must outlive the decoder

  std::string push(int id) { return tokenizer_->is_special(id) ? std::string() : stream_.push(tokenizer_->bytes_of(id)); }
  std::string finish() { return stream_.finish(); }  // U+FFFD where the text ended inside a character

 private:
  const Tokenizer* tokenizer_;
  Utf8Stream stream_;
};

}  // namespace llama
