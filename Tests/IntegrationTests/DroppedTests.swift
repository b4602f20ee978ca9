import GenShared
import GenTestSupport
import Testing

extension DeadQueueUse {
    /// Messages that RabbitMQ gave up, as its delivery limit does: through the exchange that its queues name.
    @Suite("Dropped messages", .serialized, .timeLimit(.minutes(3)))
    struct DroppedTests {
        @Test("a job whose message RabbitMQ gave up is failed with the code dropped, and a copy is in the dead queue")
        func dropped() async throws {
            try await withWorker { worker in
                let id = TestEnvironment.uniqueName("dropped-")
                let body = #"{"v":1,"id":"\#(id)","kind":"reply","input":{"text":"x"}}"#
                try await drop(Array(body.utf8), id: id, pool: worker.pool)
                // A watcher of its own hears of the end, as of any other.
                let watched = try await dispatcher("watch", id)
                #expect(watched.status == 1 && watched.errors.contains("gave the message up"), "\(watched)")
                #expect(try await QueueTool.redis("HGET", "gen:{\(id)}:job", "state") == "failed")
                let error = try JSONParser.parse(await QueueTool.redis("HGET", "gen:{\(id)}:job", "error"))
                #expect(error["code"]?.string == "dropped")
                let shown = try await RunningProgram.until(within: .seconds(30)) {
                    let shown = try await dispatcher("dead", "show", id, "--json")
                    return shown.status == 0 ? try JSONParser.parse(shown.output) : nil
                }
                #expect(shown["reason"]?.string == "dropped" && shown["body"]?["input"]?["text"]?.string == "x")
                #expect(try await dispatcher("dead", "drop", id).status == 0)
            }
        }

        private func drop(_ body: [UInt8], id: String, pool: String) async throws {
            let publisher = AMQPPublisher(url: try TestEnvironment.amqpURL(), name: "drop-test")
            let message = AMQPMessage(
                exchange: Topology.dropped, routingKey: "\(pool).interactive", body: body, messageID: id, type: "reply")
            #expect(try await publisher.publish(message, within: .seconds(10)) == .confirmed)
            await publisher.close()
        }
    }
}
