namespace go kitextest

enum Color { RED = 1, BLUE = 2 }

struct Address {
  1: required string street,
  2: optional i16 number,
}

struct Person {
  1: string name,
  2: optional i32 age,
  3: binary photo,
  4: list<string> names,
  5: map<string, i64> scores,
  6: set<i32> lucky,
  7: optional Address home,
  8: list<Person> friends,
  9: bool happy,
  10: i8 small,
  11: double height,
  12: Color color,
  13: list<bool> flags,
  14: map<string, list<i32>> lists,
  15: optional Person spouse,
}
