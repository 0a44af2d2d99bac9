// The histogram of CONTRACT.md: nanoseconds from 1 to 60e9 with 3 significant digits. Debian 12 has no
// package of HdrHistogram for C or C++, so the part that a client needs is here: recording, merging,
// and the V2 compressed encoding. The format is described by the Java implementation,
// org.HdrHistogram.AbstractHistogram.encodeIntoByteBuffer.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace arena {

class Histogram {
 public:
  static constexpr int64_t kLeast = 1;
  static constexpr int64_t kMost = 60'000'000'000;

  Histogram() : counts_(kCounts) {}

  // Counts a value; one outside the range counts as the nearest one inside it.
  // Not safe for concurrent use.
  void record(int64_t value) {
    value = std::clamp(value, kLeast, kMost);
    counts_[index(value)]++;
    most_ = std::max(most_, value);
  }

  // Adds the counts of another one.
  void merge(const Histogram& other) {
    for (size_t i = 0; i < counts_.size(); i++) counts_[i] += other.counts_[i];
    most_ = std::max(most_, other.most_);
  }

  // Returns the V2 encoding before its compression.
  std::string encode_v2() const {
    std::string counts = encode_counts(), out;
    put(out, 0x1c849303 | 0x10, 4);  // the cookie, and the word size of a LEB128 encoding
    put(out, counts.size(), 4);
    put(out, 0, 4);  // normalizing index offset
    put(out, kDigits, 4);
    put(out, kLeast, 8);
    put(out, kMost, 8);
    put(out, 0x3ff0000000000000, 8);  // conversion ratio to double: 1.0
    return out + counts;
  }

  // Returns the V2 compressed encoding as base64.
  std::string encode() const {
    const std::string plain = encode_v2();
    uLongf size = compressBound(plain.size());
    std::string compressed(size, '\0');
    if (compress2(reinterpret_cast<Bytef*>(compressed.data()), &size,
                  reinterpret_cast<const Bytef*>(plain.data()), plain.size(), Z_BEST_COMPRESSION) != Z_OK)
      throw std::runtime_error("compress the histogram: zlib failed");
    std::string out;
    put(out, 0x1c849304 | 0x10, 4);
    put(out, size, 4);
    out.append(compressed, 0, size);
    return base64(out);
  }

 private:
  static constexpr int kDigits = 3;
  // 2048 buckets of one unit hold 3 digits of what is below 2048. Every further 1024 buckets hold the
  // next power of two with units twice as wide.
  static constexpr int kHalfMagnitude = 10;
  static constexpr int64_t kHalf = 1 << kHalfMagnitude;
  static constexpr int kBuckets = 26;  // 2048 << 25 is the first power beyond kMost
  static constexpr int kCounts = (kBuckets + 1) * kHalf;

  static size_t index(int64_t value) {
    const int bits = 64 - __builtin_clzll(static_cast<uint64_t>(value) | (2 * kHalf - 1));
    const int bucket = bits - (kHalfMagnitude + 1);
    return ((bucket + 1) << kHalfMagnitude) + (value >> bucket) - kHalf;
  }

  static void put(std::string& out, uint64_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
  }

  // Counts up to the last one that is not zero; a run of zeros is its negative length.
  std::string encode_counts() const {
    std::string out;
    const size_t limit = index(most_) + 1;
    for (size_t i = 0; i < limit;) {
      int64_t zeros = 0;
      while (i < limit && counts_[i] == 0) zeros++, i++;
      if (zeros > 0) {
        zigzag(out, zeros == 1 ? 0 : -zeros);
        continue;
      }
      zigzag(out, counts_[i++]);
    }
    return out;
  }

  // ZigZag LEB128 as HdrHistogram has it: the ninth byte holds 8 bits instead of 7.
  static void zigzag(std::string& out, int64_t value) {
    uint64_t v = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
    for (int i = 0; i < 8 && v >= 0x80; i++) {
      out.push_back(static_cast<char>(v | 0x80));
      v >>= 7;
    }
    out.push_back(static_cast<char>(v));
  }

  static std::string base64(const std::string& in) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (size_t i = 0; i < in.size(); i += 3) {
      uint32_t v = 0;
      for (size_t k = 0; k < 3; k++) v = v << 8 | (i + k < in.size() ? static_cast<uint8_t>(in[i + k]) : 0);
      for (size_t k = 0; k < 4; k++) out.push_back(i + k <= in.size() ? digits[v >> (18 - 6 * k) & 63] : '=');
    }
    return out;
  }

  std::vector<int64_t> counts_;
  int64_t most_ = 0;
};

}  // namespace arena
