import CHiredis

/// A reply of Redis, copied out of the C library's memory.
package enum RedisReply: Sendable, Equatable {
    case null
    case integer(Int64)
    case status(String)
    case bulk([UInt8])
    case array([RedisReply])
    case error(String)

    /// Text of a status or a bulk string; broken UTF-8 is repaired, since Redis holds what anybody wrote.
    package var string: String? {
        switch self {
        case .status(let text): text
        case .bulk(let bytes): String(decoding: bytes, as: UTF8.self)
        default: nil
        }
    }

    /// An integer, or a string that reads as one.
    package var integer: Int64? {
        switch self {
        case .integer(let value): value
        case .bulk, .status: string.flatMap { Int64($0) }
        default: nil
        }
    }

    package var array: [RedisReply]? {
        if case .array(let elements) = self { elements } else { nil }
    }
}

extension RedisReply {
    /// Copies a reply; the caller still frees the C one.
    init(copying reply: redisReply) {
        switch reply.type {
        case REDIS_REPLY_INTEGER: self = .integer(reply.integer)
        case REDIS_REPLY_STATUS: self = .status(Self.text(reply))
        case REDIS_REPLY_ERROR: self = .error(Self.text(reply))
        case REDIS_REPLY_STRING: self = .bulk(Self.bytes(reply))
        case REDIS_REPLY_ARRAY:
            var elements: [RedisReply] = []
            elements.reserveCapacity(reply.elements)
            for index in 0..<reply.elements {
                elements.append(reply.element[index].map { RedisReply(copying: $0.pointee) } ?? .null)
            }
            self = .array(elements)
        default: self = .null
        }
    }

    private static func bytes(_ reply: redisReply) -> [UInt8] {
        guard let start = reply.str else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: reply.len))
    }

    private static func text(_ reply: redisReply) -> String { String(decoding: bytes(reply), as: UTF8.self) }
}
