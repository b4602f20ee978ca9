import CRabbitMQ

/// An AMQP field table in C memory of its own, for the length of a call.
struct AMQPTable {
    enum Value {
        case text(String)
        case integer(Int)
        case bool(Bool)
        case table([(String, Value)])
    }

    /// Calls the body with the table; everything it points to is freed afterwards.
    static func with<Result>(_ entries: [(String, Value)], _ body: (amqp_table_t) -> Result) -> Result {
        let arena = Arena()
        return withExtendedLifetime(arena) { body(arena.table(entries)) }
    }

    private final class Arena {
        private var allocations: [UnsafeMutableRawPointer] = []

        deinit { for allocation in allocations { allocation.deallocate() } }

        func table(_ entries: [(String, Value)]) -> amqp_table_t {
            let pointer = UnsafeMutablePointer<amqp_table_entry_t>.allocate(capacity: max(1, entries.count))
            allocations.append(UnsafeMutableRawPointer(pointer))
            for (index, (key, value)) in entries.enumerated() {
                var entry = amqp_table_entry_t()
                entry.key = bytes(key)
                entry.value = field(value)
                (pointer + index).initialize(to: entry)
            }
            return amqp_table_t(num_entries: Int32(entries.count), entries: pointer)
        }

        private func field(_ value: Value) -> amqp_field_value_t {
            var field = amqp_field_value_t()
            switch value {
            case .text(let text):
                field.kind = UInt8(AMQP_FIELD_KIND_UTF8.rawValue)
                field.value.bytes = bytes(text)
            case .integer(let integer):
                field.kind = UInt8(AMQP_FIELD_KIND_I64.rawValue)
                field.value.i64 = Int64(integer)
            case .bool(let bool):
                field.kind = UInt8(AMQP_FIELD_KIND_BOOLEAN.rawValue)
                field.value.boolean = bool ? 1 : 0
            case .table(let entries):
                field.kind = UInt8(AMQP_FIELD_KIND_TABLE.rawValue)
                field.value.table = table(entries)
            }
            return field
        }

        private func bytes(_ text: String) -> amqp_bytes_t {
            let utf8 = Array(text.utf8)
            let pointer = UnsafeMutableRawPointer.allocate(byteCount: max(1, utf8.count), alignment: 1)
            allocations.append(pointer)
            pointer.copyMemory(from: utf8, byteCount: utf8.count)
            return amqp_bytes_t(len: utf8.count, bytes: pointer)
        }
    }
}

extension amqp_bytes_t {
    /// A copy: the memory belongs to a pool that the library recycles.
    var copied: [UInt8] {
        guard len > 0, let bytes else { return [] }
        return Array(UnsafeRawBufferPointer(start: bytes, count: len))
    }

    var text: String { String(decoding: copied, as: UTF8.self) }
}

/// Calls the body with text as AMQP bytes that point into it.
func withAMQPBytes<Result>(_ text: String, _ body: (amqp_bytes_t) -> Result) -> Result {
    var text = text
    return text.withUTF8 { utf8 in
        body(amqp_bytes_t(len: utf8.count, bytes: UnsafeMutableRawPointer(mutating: utf8.baseAddress)))
    }
}

/// Calls the body with bytes as AMQP bytes that point into them.
func withAMQPBytes<Result>(_ bytes: [UInt8], _ body: (amqp_bytes_t) -> Result) -> Result {
    bytes.withUnsafeBytes { buffer in
        body(amqp_bytes_t(len: buffer.count, bytes: UnsafeMutableRawPointer(mutating: buffer.baseAddress)))
    }
}
