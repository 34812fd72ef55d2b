-- Sends browser-size request heads to hosts in turn and reports as JSON on the last line of the output.
-- Arguments: path, number of hosts, domain, and how a host is named by its number.

local heads = {}
local next_head = 0

local BROWSER = table.concat({
  "Connection: keep-alive",
  'sec-ch-ua: "Chromium";v="126", "Not.A/Brand";v="24", "Google Chrome";v="126"',
  "sec-ch-ua-mobile: ?0",
  'sec-ch-ua-platform: "Windows"',
  "Upgrade-Insecure-Requests: 1",
  "User-Agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
  "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
  "Sec-Fetch-Site: same-origin",
  "Sec-Fetch-Mode: navigate",
  "Sec-Fetch-User: ?1",
  "Sec-Fetch-Dest: document",
  "Accept-Encoding: gzip, deflate, br, zstd",
  "Accept-Language: en-GB,en;q=0.9,de;q=0.8",
  "Cookie: session=4f1c9a7be2d84c0f9a3b6d5e8c7f0a12; theme=dark; consent=all",
}, "\r\n")

function init(args)
  local path, count, domain, name = args[1], tonumber(args[2]), args[3], args[4]
  for index = 0, count - 1 do
    local host = string.format(name .. ".%s", index, domain)
    heads[index] = "GET " .. path .. " HTTP/1.1\r\nHost: " .. host .. "\r\n" .. BROWSER .. "\r\n\r\n"
  end
  next_head = 0
end

function request()
  local head = heads[next_head]
  next_head = next_head + 1
  if heads[next_head] == nil then next_head = 0 end
  return head
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "duration_us": %d, "bytes": %d, "p50_us": %d, "p90_us": %d, "p99_us": %d, "p999_us": %d, ' ..
    '"max_us": %d, "connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}\n',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(90),
    latency:percentile(99), latency:percentile(99.9), latency.max, errors.connect, errors.read, errors.write,
    errors.status, errors.timeout))
end
