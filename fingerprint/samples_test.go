package fingerprint

// sample is a text in one language, of at least 50 words of the normal form.
type sample struct {
	name, text string
	wide       bool // all its words are single code points
}

var samples = []sample{
	{name: "english", text: `The harbour office closes at noon on Fridays, so please bring the customs
papers before eleven. Every container that arrives without a stamped manifest waits on the north quay,
where the crane crew checks seals, weights and labels by hand. Last winter two crates of ceramic valves
were lost because nobody had written down which lorry took them; since then the foreman keeps a small
notebook and signs each line himself. Don't rely on the screens in the hall: they lag by 20 minutes.`},
	{name: "german", text: `Die Werkstatt öffnet um sieben, aber der Meister kommt erst später, weil er
morgens die größeren Stücke aus dem Lager holt. Wer eine Maschine ausleihen möchte, trägt sich in die
Liste ein und gibt den Schlüssel abends zurück. Außerdem müssen alle Späne in die Tonne hinter der Tür;
in der Straße darf nichts liegen bleiben. Übrigens: das Öl für die große Säge steht oben im Regal.`},
	{name: "french", text: `Après la réunion, l'équipe a décidé de déplacer le marché vers la place du vieux
théâtre, où l'ombre des tilleuls protège les étals pendant l'été. Les pêcheurs gardent leur rangée près
de la fontaine; les fleuristes, eux, préfèrent l'entrée sud. Chaque vendeur reçoit une clé numérotée et
doit balayer son emplacement avant dix-neuf heures. Le maire viendra goûter les fromages samedi.`},
	{name: "russian", text: `Утром смотритель маяка поднимается по узкой лестнице и проверяет лампу, потом
записывает погоду в толстую тетрадь. Если ветер сильный, он закрывает ставни и звонит на станцию. Ёлки
на берегу посадил ещё его дед, и каждую весну рыбаки приносят сюда краску, чтобы обновить ограду. Зимой
лодки стоят под навесом, а дети катаются на санках до самого пирса.`},
	{name: "greek", text: `Το μικρό καΐκι φεύγει από το λιμάνι πριν ξημερώσει και γυρίζει όταν ο ήλιος
είναι ψηλά. Οι ψαράδες απλώνουν τα δίχτυα στην προκυμαία, μετρούν τα ψάρια και πίνουν καφέ κάτω από τον
πλάτανο. Ο παππούς διηγείται πάντα την ίδια ιστορία για το μεγάλο κύμα, ενώ τα παιδιά γελούν και
ζητούν άλλη μία. Το βράδυ όλος ο κόσμος κάθεται στις αυλές.`},
	{name: "arabic", text: `يفتح المخبز أبوابه قبل شروق الشمس، وتصل الشاحنة محملة بأكياس الدقيق من الطاحونة
القديمة. يعجن الأب العجين بيديه بينما يراقب الابن الفرن الكبير، وتكتب الأم أسماء الزبائن في دفتر أزرق.
في أيام العيد تصنع العائلة حلوى اللوز والفستق، ويقف الجيران في صف طويل حتى نهاية الشارع. كل رغيف يوزن
مرتين ثم يوضع على الرف الخشبي قرب النافذة لكي يبرد قليلا.`},
	{name: "hebrew", text: `הספרייה העירונית נמצאת מאחורי השוק, ליד תחנת האוטובוס הישנה. בכל יום שלישי באים
ילדים מבתי הספר כדי לשמוע סיפור, והספרנית מגישה להם תה מתוק. על המדף העליון שמורים ספרים נדירים שנכתבו
ביד לפני שנים רבות, ורק מי שמבקש רשות יכול לפתוח אותם. בערב מכבים את האורות וסוגרים את החלונות הגבוהים
לפני שהגשם מתחיל לרדת על הגג האדום של הבניין.`},
	{name: "hindi", text: `गाँव के बाहर एक पुराना कुआँ है जहाँ सुबह औरतें पानी भरने आती हैं और दोपहर में किसान
अपने बैलों के साथ आराम करते हैं। पिछले साल पंचायत ने उसके पास नीम के दस पेड़ लगाए और एक छोटी दीवार बनवाई।
अब शाम को बच्चे वहीं खेलते हैं, बुज़ुर्ग कहानियाँ सुनाते हैं और दुकानदार गरम चाय बेचता है। बारिश के मौसम में
रास्ता कीचड़ से भर जाता है, इसलिए सब लोग मिलकर पत्थर बिछाते हैं।`},
	{name: "code", text: `func (q *queue) push(item job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) >= q.limit { // full: the caller backs off
		return fmt.Errorf("queue %s: %d waiting: %w", q.name, len(q.items), errFull)
	}
	q.items = append(q.items, item)
	for i := len(q.items) - 1; i > 0 && q.items[i].due.Before(q.items[i-1].due); i-- {
		q.items[i], q.items[i-1] = q.items[i-1], q.items[i]
	}
	select { case q.wake <- struct{}{}: default: }
	return nil
}`},
	{name: "chinese", wide: true, text: `仓库的钥匙放在门卫室左边的抽屉里，取用之前请先登记姓名和时间。每逢雨季，河水会漫过旧码头，
工人们必须提前把木箱搬到二楼，再用油布盖好。去年秋天有一批茶叶因为受潮全部退货，老板因此换了供应商，还请人修补了
屋顶。现在每天傍晚都有人检查窗户、电闸和消防栓，结果写在黑板上，第二天早晨由值班经理签字确认。`},
	{name: "japanese", wide: true, text: `駅前の古い時計店は、祖父の代から三代続いている。店主は毎朝シャッターを上げると、まず壁の
柱時計のねじを巻き、それからコーヒーを淹れる。修理を待つ腕時計には小さな札が付けられ、預かった日と持ち主の名前が
丁寧な字で書かれている。雨の日には近所の子どもたちが雨宿りに来て、ガラスケースの中の部品を飽きずに眺めていた。`},
	{name: "korean", wide: true, text: `마을 어귀의 방앗간은 가을이 되면 새벽부터 불을 밝힌다. 농부들은 경운기에 볏가마를 싣고 와서
차례를 기다리며 따뜻한 국밥을 나눠 먹는다. 주인은 낡은 저울에 무게를 달고 공책에 이름과 날짜를 꼼꼼히 적은 뒤 기계를
돌린다. 햅쌀 냄새가 골목까지 퍼지면 아이들이 달려와 누룽지를 얻어 간다.`},
	{name: "thai", wide: true, text: `ร้านหนังสือเก่าริมคลองเปิดตั้งแต่เช้าจนถึงค่ำ เจ้าของร้านชอบนั่งจิบชาพลางซ่อมปกหนังสือที่ชำรุด
ลูกค้าประจำมักนำขนมมาฝากและนั่งคุยกันเรื่องนิยายที่เพิ่งอ่านจบ เมื่อฝนตกหนักน้ำจะท่วมถึงบันได
ทุกคนจึงช่วยกันย้ายหนังสือขึ้นชั้นสอง`},
	{name: "lao", wide: true, text: `ຕະຫຼາດເຊົ້າເປີດແຕ່ຕີຫ້າ ຊາວສວນເອົາຜັກສົດມາຂາຍ ແລະ ແມ່ຄ້າຕົ້ມເຝີຢູ່ແຄມທາງ
ເດັກນ້ອຍຂີ່ລົດຖີບໄປໂຮງຮຽນຜ່ານຂົວໄມ້ເກົ່າ ຕອນແລງຄົນເຖົ້ານັ່ງເບິ່ງແມ່ນໍ້າຂອງ ແລະ ເລົ່ານິທານໃຫ້ຫຼານຟັງ`},
	{name: "khmer", wide: true, text: `ផ្សារចាស់នៅក្បែរមាត់ទន្លេបើកតាំងពីព្រលឹម អ្នកនេសាទយកត្រីស្រស់មកលក់
ហើយម្តាយៗទិញបន្លែសម្រាប់ធ្វើម្ហូបថ្ងៃត្រង់ ក្មេងៗជិះកង់ទៅសាលារៀនកាត់តាមផ្លូវដើមត្នោត នៅពេលល្ងាចមនុស្សចាស់អង្គុយលេងអុក`},
	{name: "burmese", wide: true, text: `ရွာထိပ်က လက်ဖက်ရည်ဆိုင်လေးသည် မနက်စောစောကတည်းက ဖွင့်သည်။ လယ်သမားများက လယ်ထဲမသွားမီ
ထိုင်၍ သတင်းစာဖတ်ကြသည်။ ကလေးများက ကျောင်းသွားရင်း မုန့်ဝယ်ကြပြီး ဆိုင်ရှင်က ပြုံးလျက် နှုတ်ဆက်သည်။`},
}
