// What the server's and the client's transports have in common.
#pragma once

#include <cstdint>

namespace arena {

// A buffer of Thrift's default size, 512 bytes, would write the message of 581 bytes in two pieces.
inline constexpr uint32_t kBufferBytes = 16 << 10;

}  // namespace arena
