/// Why a job was not accepted.
public enum SubmitError: Error, Sendable, CustomStringConvertible {
    /// The job itself is not valid.
    case invalid(JobRejection)
    /// A server could not be reached or refused us; nothing was accepted.
    case unreachable(String)
    /// No queue takes it, the queue is full, or the id is taken by another job.
    case rejected(String)
    /// A key is held by that other job: an idempotency key whose payload is another, or a unique key whose job is open.
    case held(by: JobID, String)
    /// The deadline passed while it was uncertain whether RabbitMQ has the job. It may run; nothing was lost by
    /// asking again under the same id.
    case unknown(JobID, String)

    /// One line for a person.
    public var description: String {
        switch self {
        case .invalid(let rejection): rejection.description
        case .unreachable(let reason), .rejected(let reason), .held(_, let reason): reason
        case .unknown(let id, let reason): "whether job \(id) was accepted is not known: \(reason)"
        }
    }
}
