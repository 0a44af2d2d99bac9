// Records the numbers of the standard input, each in one of two histograms, and prints their sum.
#include <iostream>

#include "cpp/hdr.h"

int main() {
  arena::Histogram all, other;
  int64_t value;
  for (int i = 0; std::cin >> value; i++) (i % 2 == 0 ? all : other).record(value);
  all.merge(other);
  std::cout << all.encode();
}
