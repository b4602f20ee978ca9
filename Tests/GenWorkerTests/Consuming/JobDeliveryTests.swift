import GenShared
import Testing

@testable import GenWorker

@Suite("Job delivery")
struct JobDeliveryTests {
    private func delivery(_ body: String) -> JobDelivery {
        JobDelivery(pool: "large", lane: .batch, body: Array(body.utf8))
    }

    private let whole =
        #"{"v":1,"id":"job-1","kind":"slogan","input":{"text":"coffee"},"pool":"text","lane":"interactive"}"#

    private func rejection(_ delivery: JobDelivery) -> JobRejection? {
        do throws(JobRejection) {
            _ = try delivery.decode(JobLimits())
            return nil
        } catch { return error }
    }

    @Test("B16: the queue wins over the pool and lane of the body")
    func route() throws {
        let job = try delivery(whole).decode(JobLimits())
        #expect(job.id.rawValue == "job-1" && job.pool == "large" && job.lane == .batch)
    }

    @Test("B08: a message id must be the job's", arguments: [("job-1", true), ("job-2", false), ("", false)])
    func messageID(_ id: String, _ isTaken: Bool) {
        var delivery = delivery(whole)
        delivery.messageID = id
        #expect(rejection(delivery)?.code == (isTaken ? nil : .badID))
    }

    @Test(
        "B12: content types: JSON with any parameters, or none at all",
        arguments: [
            ("application/json", true), ("Application/JSON; charset=utf-8", true), ("", true), ("text/plain", false),
            ("application/octet-stream", false),
        ])
    func contentType(_ type: String, _ isTaken: Bool) {
        var delivery = delivery(whole)
        delivery.contentType = type
        #expect(rejection(delivery)?.field == (isTaken ? nil : "content_type"))
    }

    @Test("B12: nothing is unpacked", arguments: [("", true), ("utf-8", true), ("UTF-8", true), ("gzip", false)])
    func contentEncoding(_ encoding: String, _ isTaken: Bool) {
        var delivery = delivery(whole)
        delivery.contentEncoding = encoding
        #expect(rejection(delivery)?.field == (isTaken ? nil : "content_encoding"))
    }

    @Test("a message that is no job may still name one")
    func salvage() {
        #expect(delivery(#"{"v":9,"id":"job-1"}"#).salvagedID?.rawValue == "job-1")
        #expect(delivery(#"{"id":"a b"}"#).salvagedID == nil)
        #expect(delivery(#"{"id":7}"#).salvagedID == nil)
        #expect(delivery("not json").salvagedID == nil)
        var named = delivery("not json")
        named.messageID = "job-2"
        #expect(named.salvagedID?.rawValue == "job-2")
        named.messageID = "no id!"
        #expect(named.salvagedID == nil)
    }

    @Test("a worker's name has its host and process, and fits keys and events")
    func hostIdentity() {
        let identity = HostIdentity.current
        #expect(identity.workerID.hasPrefix("\(identity.host)-\(identity.pid)-"))
        #expect(identity.workerID.utf8.count <= 64 && identity.workerID.allSatisfy { $0.isASCII && !$0.isWhitespace })
        #expect(HostIdentity.current.workerID == identity.workerID)
    }
}
