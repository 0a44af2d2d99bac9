package redis

import "github.com/redis/rueidis"

// linger is how many milliseconds an expired record stays in the hash. Readers ignore it because
// of its time, except right after an outage, during which it could not be renewed.
const linger = 30_000

// The revision of a service changes with every change of its records. It is the time in
// microseconds, or one more than the last revision if that is later: so it always grows, even
// after Redis has lost all data.
//
// Keys: instances, expiry, owners, revision. Arguments: owner, TTL in milliseconds, linger,
// channel, and per item: put, keep or remove, the key of the instance, its record. The answer has
// "ok" or "taken" per item.
const applySource = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local owner, ttl, linger, changed, results = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), false, {}
for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - linger)) do
  redis.call('HDEL', KEYS[1], key)
  redis.call('ZREM', KEYS[2], key)
  redis.call('HDEL', KEYS[3], key)
end
for i = 5, #ARGV, 3 do
  local what, key, record = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local holder = redis.call('HGET', KEYS[3], key)
  local result = 'ok'
  if what == 'remove' then
    if holder == owner then
      redis.call('HDEL', KEYS[1], key)
      redis.call('ZREM', KEYS[2], key)
      redis.call('HDEL', KEYS[3], key)
      changed = true
    end
  elseif what == 'keep' and holder and holder ~= owner then
    result = 'taken'
  else
    local expiry = redis.call('ZSCORE', KEYS[2], key)
    if holder ~= owner or not expiry or tonumber(expiry) <= now or redis.call('HGET', KEYS[1], key) ~= record then
      redis.call('HSET', KEYS[1], key, record)
      redis.call('HSET', KEYS[3], key, owner)
      changed = true
    end
    redis.call('ZADD', KEYS[2], now + ttl, key)
  end
  results[#results + 1] = result
end
if changed then
  local last = tonumber(redis.call('GET', KEYS[4]) or '0')
  local revision = math.max(last + 1, tonumber(time[1]) * 1000000 + tonumber(time[2]))
  redis.call('SET', KEYS[4], string.format('%.0f', revision))
  redis.call('PUBLISH', ARGV[4], 'changed')
end
for _, key in ipairs(KEYS) do
  local left = redis.call('PTTL', key)
  if left ~= -2 and left < ttl + linger then redis.call('PEXPIRE', key, ttl + linger) end
end
return results
`

// listSource reads the records of a service, unless its revision is the known one and no record
// has expired since.
//
// Keys: instances, expiry, owners, revision. Arguments: the known revision, and when it was read.
// The answer: revision, now, when the next record expires or 0, and then, if there are changes,
// keys with records and keys with expiry times.
const listSource = `
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
local revision = redis.call('GET', KEYS[4]) or ''
local next = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or '0'
if revision ~= '' and revision == ARGV[1] and redis.call('ZCOUNT', KEYS[2], '(' .. ARGV[2], now) == 0 then
  return {revision, now, next}
end
return {revision, now, next, redis.call('HGETALL', KEYS[1]), redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')}
`

// aliveSource counts the instances of a service that have not expired. Keys: expiry.
const aliveSource = `
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
return redis.call('ZCOUNT', KEYS[1], '(' .. now, '+inf')
`

// saveSource writes a document if it is at the expected revision, and returns the new one, or
// nothing on a conflict. Keys: the document. Arguments: the revision, the data, the channel.
const saveSource = `
local last = redis.call('HGET', KEYS[1], 'revision') or '0'
if last ~= ARGV[1] then return '' end
local time = redis.call('TIME')
local revision = math.max(tonumber(last) + 1, tonumber(time[1]) * 1000000 + tonumber(time[2]))
local text = string.format('%.0f', revision)
redis.call('HSET', KEYS[1], 'revision', text, 'data', ARGV[2])
redis.call('PUBLISH', ARGV[3], 'changed')
return text
`

var (
	applyScript = rueidis.NewLuaScript(applySource)
	listScript  = rueidis.NewLuaScript(listSource)
	aliveScript = rueidis.NewLuaScript(aliveSource)
	saveScript  = rueidis.NewLuaScript(saveSource)
)
