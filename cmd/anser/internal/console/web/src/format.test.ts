import { expect, test } from "vitest";
import { bytes, clock, percent, rate, short, span } from "./format";

test("figures have at most four characters and a unit", () => {
	expect([0, 0.004, 1, 9.994, 12.34, 99.96, 123.4, 9999, 12345, 2.5e6].map(rate)).toEqual(["0", "0.00", "1.00", "9.99", "12.3", "100.0", "123", "9999", "12.3k", "2.5M"]);
	expect([0, 900, 999.6, 30517, 99_960, 1_064_000, 150e6, 999.96e6, 2.5e9].map(span)).toEqual(["–", "900 ns", "1.00 µs", "30.5 µs", "100 µs", "1.06 ms", "150 ms", "1.00 s", "2.50 s"]);
	expect([0, 1023, 1024, 17 << 20].map(bytes)).toEqual(["0 B", "1023 B", "1.0 KiB", "17 MiB"]);
	expect([0, 0.0005, 0.012, 0.25].map(percent)).toEqual(["0 %", "< 0.1 %", "1.2 %", "25 %"]);
});

test("a time has its date only if that is not today", () => {
	const now = new Date(2026, 2, 4, 15, 0, 0);
	expect(clock(new Date(2026, 2, 4, 9, 5, 7).toISOString(), now)).toBe("09:05:07");
	expect(clock(new Date(2026, 2, 3, 9, 5, 7).toISOString(), now)).toBe("2026-03-03 09:05:07");
	expect(clock("1970-01-01T00:00:00Z", now)).toBe("–");
});

test("a long name keeps both ends", () => {
	expect(short("shop.service-with-a-long-name-1", 16)).toBe("shop.servi…ame-1");
	expect(short("front", 16)).toBe("front");
});
