//! Finds users of a container in its own `/etc/passwd` and `/etc/group`.

use crate::guest::frame::Account;

/// The user named by `wanted`, as for `docker exec --user`: a name or a number, and perhaps a colon
/// and a group. A number needs no entry in `passwd`.
pub(super) fn find(wanted: &str, passwd: &str, group: &str) -> Option<Account> {
    let (user, of_group) = match wanted.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (wanted, None),
    };
    let number: Option<u32> = user.parse().ok();
    let mut account = passwd
        .lines()
        .filter_map(entry)
        .find(|account| account.name == user.as_bytes() || number == Some(account.uid))
        .or_else(|| number.map(|uid| Account { uid, home: b"/".to_vec(), ..Account::default() }))?;
    match of_group {
        Some(name) => account.gid = gid(name, group)?,
        None => account.groups = memberships(&account, group),
    }
    Some(account)
}

/// Reads a line `name:password:uid:gid:comment:home:shell`.
fn entry(line: &str) -> Option<Account> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, uid, gid, _, home, ..] = fields.as_slice() else { return None };
    Some(Account {
        uid: uid.parse().ok()?,
        gid: gid.parse().ok()?,
        groups: Vec::new(),
        name: name.as_bytes().to_vec(),
        home: home.as_bytes().to_vec(),
    })
}

fn gid(wanted: &str, group: &str) -> Option<u32> {
    let named = group.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(wanted)).then(|| fields.nth(1)?.parse().ok())?
    });
    named.or_else(|| wanted.parse().ok())
}

/// The groups that have the user as a member. Their lines are `name:password:gid:member,member`.
fn memberships(account: &Account, group: &str) -> Vec<u32> {
    let member = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, gid, members] = fields.as_slice() else { return None };
        let is_member = members.split(',').any(|member| member.as_bytes() == account.name);
        (is_member && !account.name.is_empty()).then(|| gid.parse().ok())?
    };
    group.lines().filter_map(member).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users() {
        const PASSWD: &str =
            "root:x:0:0:root:/root:/bin/bash\n\nbroken:x\nalice:x:1000:1001:A:/home/alice:/bin/sh\n";
        const GROUP: &str = "root:x:0:\nalice:x:1001:\nstaff:x:50:bob,alice\naudio:x:29:alic,alice2\n";
        let check = |wanted: &str, expect: Option<(u32, u32, &[u32], &str)>| {
            let found = find(wanted, PASSWD, GROUP);
            let found = found.as_ref().map(|account| {
                let home = std::str::from_utf8(&account.home).unwrap();
                (account.uid, account.gid, account.groups.as_slice(), home)
            });
            assert_eq!(found, expect, "{wanted}");
        };
        check("root", Some((0, 0, &[], "/root")));
        check("alice", Some((1000, 1001, &[50], "/home/alice")));
        check("1000", Some((1000, 1001, &[50], "/home/alice")));
        check("4242", Some((4242, 0, &[], "/")));
        check("alice:staff", Some((1000, 50, &[], "/home/alice")));
        check("alice:7", Some((1000, 7, &[], "/home/alice")));
        check("4242:4243", Some((4242, 4243, &[], "/")));
        check("alice:nobody", None);
        check("bob", None);
        check("", None);
    }
}
