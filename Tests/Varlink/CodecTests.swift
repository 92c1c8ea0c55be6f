// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import DialtoneVarlink

@Suite struct CodecTests {
    typealias Parameters = CodecAPI.Do.Parameters
    typealias Method = CodecAPI.Do

    @Test(arguments: [
        (#"{"method":"a.B"}"#, VarlinkCall.Mode.single),
        (#"{"method":"a.B","more":false,"oneway":false,"upgrade":false}"#, .single),
        (#"{"method":"a.B","more":null}"#, .single),
        (#" {"method" : "a.B" , "more" : true}"#, .more),
        (#"{"method":"a.B","oneway":true,"more":false}"#, .oneway),
        (#"{"method":"a.B","upgrade":true}"#, .upgrade),
        (#"{"method":"a.B","added later":[1]}"#, .single),
    ])
    func `calls are read`(json: String, mode: VarlinkCall.Mode) throws {
        let call = try VarlinkCall(Array(json.utf8))
        #expect(call.method == "a.B")
        #expect(call.mode == mode)
    }

    @Test(arguments: [
        ("", VarlinkViolation.notJSON),
        ("hello", .notJSON),
        (#"{"method":"a.B""#, .notJSON),
        (#"{"method":"a.B"} {}"#, .notJSON),
        (#"{"method":"a.B","passed over":1e999}"#, .notJSON),
        (#"{"method":"a.B","passed over":1\#(String(repeating: "0", count: 400))}"#, .notJSON),
        (String(repeating: "[", count: 10_000), .nestedTooDeep(limit: 32)),
        ("[]", .notAnObject),
        (#""text""#, .notAnObject),
        ("12", .notAnObject),
        ("null", .notAnObject),
        ("{}", .notACall("method is missing")),
        (#"{"method":null}"#, .notACall("method is null")),
        (#"{"method":7}"#, .notACall("method has the wrong type")),
        (#"{"method":"a.B","more":1}"#, .notACall("more has the wrong type")),
        (#"{"method":"a.B","more":"true"}"#, .notACall("more has the wrong type")),
        (#"{"method":"a.B","more":true,"oneway":true}"#, .notACall("oneway, more and upgrade exclude each other")),
    ])
    func `what is no call is refused with the reason`(json: String, violation: VarlinkViolation) {
        #expect(throws: violation) { try VarlinkCall(Array(json.utf8)) }
    }

    @Test func `bytes that are not UTF-8 are refused wherever they stand`() {
        let broken = Array(#"{"method":"a.B","passed over":""#.utf8) + [0xff] + Array(#""}"#.utf8)
        #expect(throws: VarlinkViolation.notUTF8) { try VarlinkCall(broken) }
        let utf16: [UInt8] = [0xff, 0xfe] + #"{"method":"a.B"}"#.utf16.flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] }
        #expect(throws: VarlinkViolation.notUTF8) { try VarlinkCall(utf16) }
    }

    @Test(arguments: ["", #","parameters":null"#, #","parameters":{}"#])
    func `parameters left out null and empty are the same`(member: String) throws {
        let call = try VarlinkCall(Array(#"{"method":"a.B"\#(member)}"#.utf8))
        #expect(try call.parameters(as: Parameters.self) == Parameters())
        #expect(try call.parameters(as: VarlinkEmpty.self) == VarlinkEmpty())
        let missing = VarlinkFailure(ServiceAPI.InvalidParameter(parameter: "name"))
        #expect(throws: missing) { try call.parameters(as: CodecAPI.Require.Parameters.self) }
    }

    @Test(arguments: [
        (#"{"text":1}"#, "text"),
        (#"{"names":["a",1]}"#, "names[1]"),
        (#"{"names":["a",null]}"#, "names[1]"),
        (#"{"colour":"blue"}"#, "colour"),
        (#"{"count":1.5}"#, "count"),
        (#"{"count":100000000000000000000}"#, "count"),
        (#"{"count":9007199254740993,"numbers":[100000000000000000000]}"#, "count"),
        (#"{"count":9007199254740993,"numbers":[1]}"#, nil),
        (#"{"count":7,"numbers":[100000000000000000000]}"#, "numbers[0]"),
        (#"{"te\u0301xt":1}"#, "te\u{301}xt"),
        (#"{"count":1,"place":{"x":0.5}}"#, "place.x"),
        (#"{"count":1.5,"place":{"x":1,"y":0.5}}"#, "count"),
        (#"{"place":{}}"#, "place.x"),
        (#"{"pauseMilliseconds":"1"}"#, "pauseMilliseconds"),
        (#"{"pause":1}"#, "pause"),
        (#"{"place":[]}"#, "place"),
        (#"{"txet":"a"}"#, "txet"),
        (#"{"place":{"x":1,"z":1}}"#, "place.z"),
        ("[]", "parameters"),
        (#""text""#, "parameters"),
    ])
    func `the parameter that is wrong is named`(parameters: String, name: String?) throws {
        let call = try VarlinkCall(Array(#"{"method":"a.B","parameters":\#(parameters)}"#.utf8))
        guard let name else {
            _ = try call.parameters(as: Parameters.self)
            return
        }
        let failure = #expect(throws: VarlinkFailure.self) { try call.parameters(as: Parameters.self) }
        #expect(failure?.decoded() == ServiceAPI.InvalidParameter(parameter: name))
    }

    @Test(arguments: VarlinkCall.Mode.allCases)
    func `calls survive encoding and are nul terminated once`(mode: VarlinkCall.Mode) throws {
        let parameters = Parameters(
            text: "a/b \u{0} é \n", count: .max, colour: .red, place: .init(x: -1, y: 0.5), names: [])
        let bytes = VarlinkMessage.call(Method.self, parameters, mode).bytes
        #expect(bytes.filter { $0 == 0 }.count == 1 && bytes.last == 0)
        let call = try VarlinkCall(Array(bytes.dropLast()))
        #expect(call.method == "org.example.Codec.Do")
        #expect(call.mode == mode)
        #expect(try call.parameters(as: Parameters.self) == parameters)
    }

    @Test(arguments: [
        (Duration.milliseconds(1500), 1500), (.microseconds(1999), 1), (.zero, 0), (.milliseconds(-1), -1),
        (.milliseconds(Int.max), .max), (.milliseconds(Int.min), .min), (.seconds(Int64.max), .max),
        (.seconds(Int64.min), .min),
    ])
    func `a duration is written as milliseconds as many as a number can be`(duration: Duration, number: Int) throws {
        let json = Parameters(pause: duration).json
        #expect(String(decoding: json, as: UTF8.self) == #"{"pauseMilliseconds":\#(number)}"#)
        let call = try VarlinkCall(
            Array(VarlinkMessage.call(Method.self, Parameters(pause: duration)).bytes.dropLast()))
        #expect(try call.parameters(as: Parameters.self).pause == .milliseconds(number))
    }

    @Test func `replies have no other members and no null`() throws {
        func members(_ message: VarlinkMessage) throws -> [String: Any] {
            let object = try JSONSerialization.jsonObject(with: Data(message.bytes.dropLast()))
            return try #require(object as? [String: Any])
        }
        let plain = try members(.reply(Method.Reply(text: nil)))
        #expect(plain.keys.sorted() == ["parameters"])
        #expect((plain["parameters"] as? [String: Any])?.isEmpty == true)
        let continued = try members(.reply(Method.Reply(text: "x"), continues: true))
        #expect(continued.keys.sorted() == ["continues", "parameters"])
        #expect(continued["continues"] as? Bool == true)
        let error = try members(.error(ServiceAPI.MethodNotFound(method: "a.B")))
        #expect(error.keys.sorted() == ["error", "parameters"])
        #expect(error["error"] as? String == "org.varlink.service.MethodNotFound")
    }

    @Test(arguments: [
        (#"{}"#, nil, false),
        (#"{"parameters":null,"error":null,"continues":null}"#, nil, false),
        (#"{"parameters":{"text":"x","added later":1},"continues":true}"#, "x", true),
        (#"{"parameters":{"text":"x"},"continues":false,"added later":{}}"#, "x", false),
    ])
    func `replies are read`(json: String, text: String?, continues: Bool) throws {
        guard case .success(let reply, let more) = try VarlinkReply<Method.Reply>(Array(json.utf8)) else {
            Issue.record("read as an error")
            return
        }
        #expect(reply.text == text)
        #expect(more == continues)
    }

    @Test(arguments: [
        ("x", VarlinkViolation.notJSON), ("[]", .notAnObject),
        (#"{"error":1}"#, .notAReply("error has the wrong type")),
        (#"{"continues":1}"#, .notAReply("continues has the wrong type")),
        (#"{"parameters":[]}"#, .notAReply("parameters has the wrong type")),
        (#"{"parameters":{"text":1}}"#, .notAReply("parameters.text has the wrong type")),
    ])
    func `what is no reply is refused with the reason`(json: String, violation: VarlinkViolation) {
        #expect(throws: violation) { try VarlinkReply<Method.Reply>(Array(json.utf8)) }
    }

    @Test func `errors are typed on both sides`() throws {
        let sent = VarlinkMessage.error(ServiceAPI.InterfaceNotFound(interface: "a.b"))
        guard case .failure(let failure) = try VarlinkReply<Method.Reply>(Array(sent.bytes.dropLast())) else {
            Issue.record("read as a success")
            return
        }
        #expect(failure.decoded() == ServiceAPI.InterfaceNotFound(interface: "a.b"))
        #expect(failure.decoded(as: ServiceAPI.MethodNotFound.self) == nil)
        #expect("\(failure)".contains("InterfaceNotFound") && "\(failure)".contains("a.b"))
        let bare = try VarlinkReply<Method.Reply>(Array(#"{"error":"org.varlink.service.ExpectedMore"}"#.utf8))
        guard case .failure(let withoutParameters) = bare else {
            Issue.record("read as a success")
            return
        }
        #expect(withoutParameters.decoded() == ServiceAPI.ExpectedMore())
    }
}

@Suite struct LongReplyTests {
    @Test(arguments: [0, 1, 3], [false, true])
    func `elements encoded one by one make the same reply`(count: Int, continues: Bool) {
        let all = (0..<count).map { CodecAPI.Place(x: $0) }
        let kind = "\"list\":[]"
        var reply = VarlinkLongReply(CodecAPI.All.Reply(list: [], kind: kind), continues: continues, "list")
        for one in all { reply.append(one) }
        let message = VarlinkMessage.reply(CodecAPI.All.Reply(list: all, kind: kind), continues: continues)
        #expect(reply.count < message.bytes.count)
        reply.reserve(4096)
        #expect(reply.finish() == message)
        #expect(reply.count == 0)
    }
}
