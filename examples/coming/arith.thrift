namespace go arith

struct Request {
  1: i64 a
  2: i64 b
}

struct Reply {
  1: i64 c
}

service Arith {
  Reply Mul(1: Request req)
}
